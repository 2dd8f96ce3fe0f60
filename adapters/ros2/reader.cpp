// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <rmw/types.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "service_ends.hpp"

namespace lagometer::ros2 {
namespace {

/// What is known about a message in addition to its content.
void note(const rmw_message_info_t& info, Arrived& arrived) noexcept {
  arrived.source_ns = info.source_timestamp;
  arrived.reception_ns = info.received_timestamp;
  arrived.writer_id = writer_id_of(info.publisher_gid.data);
  const uint64_t number = info.publication_sequence_number;
  arrived.sequence = number == RMW_MESSAGE_INFO_SEQUENCE_NUMBER_UNSUPPORTED ? 0 : number;
}

template <typename Message>
Arrived arrived_of(std::shared_ptr<const Message> message, const rclcpp::MessageInfo& info) {
  Arrived arrived;
  arrived.regions = shown(*message);
  arrived.message = std::move(message);
  note(info.get_rmw_message_info(), arrived);
  return arrived;
}

template <typename Message>
class TypedInlet final : public Reader::Inlet {
 public:
  TypedInlet(const Endpoint& endpoint, uint32_t dispatch, const std::shared_ptr<Reader::Door>& door, Missed& missed)
      : missed_(missed), pool_([] { return std::make_shared<Message>(); }) {
    rclcpp::SubscriptionOptions options;
    options.callback_group = endpoint.node.group_for(dispatch);
    missed.watch(endpoint.quality, options);
    const auto callback = [door](std::shared_ptr<const Message> message, const rclcpp::MessageInfo& info) {
      door->enter(arrived_of<Message>(std::move(message), info));
    };
    subscription_ =
        endpoint.node.ros_node().create_subscription<Message>(endpoint.topic, endpoint.qos(), callback, options);
  }
  bool take(Arrived& arrived) override {
    rclcpp::MessageInfo info;
    const std::shared_ptr<Message>& message = pool_.next();
    if (!subscription_->take(*message, info)) return false;
    arrived = arrived_of<Message>(message, info);
    return true;
  }
  void join(Waitset& waitset) override { waitset.add(subscription_); }
  void matched(lagometer_matched& out) const override {
    out.count = static_cast<uint32_t>(subscription_->get_publisher_count());
    out.exact = 0;
  }
  void counters(lagometer_counters& out) const override {
    missed_.count<rclcpp::QOSDeadlineRequestedInfo>(subscription_->get_event_handlers(),
                                                    RCL_SUBSCRIPTION_REQUESTED_DEADLINE_MISSED, out);
  }

 private:
  const Missed& missed_;
  MessagePool<std::shared_ptr<Message>, std::shared_ptr<Message> (*)()> pool_;
  typename rclcpp::Subscription<Message>::SharedPtr subscription_;
};

}  // namespace

void Reader::Door::enter(Arrived&& arrived) {
  const std::scoped_lock lock(mutex_);
  if (reader_ != nullptr) reader_->arrived(std::move(arrived));
}

void Reader::Door::close() {
  const std::scoped_lock lock(mutex_);
  reader_ = nullptr;
}

uint64_t writer_id_of(std::span<const uint8_t> gid) noexcept {
  uint64_t words[2] = {0, 0};
  std::memcpy(words, gid.data(), std::min(sizeof words, gid.size()));
  return words[0] ^ (words[1] * 0x9E3779B97F4A7C15ull);  // one of its parts alone need not be unique
}

Reader::Reader(Node& node, const lagometer_endpoint_config& config) : Reader(node, config, nullptr) {}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : endpoint_(node, config),
      dispatch_(config.dispatch),
      user_(config.user),
      on_data_(config.on_data),
      arrivals_(endpoint_.quality.keep_all ? 0 : endpoint_.quality.depth),
      door_(std::make_shared<Door>(*this)),
      service_(std::move(service)) {
  if (dispatch_ == LAGOMETER_DISPATCH_LISTENER && on_data_ == nullptr)
    throw Error(LAGOMETER_INVALID, "ros2: dispatch by listener without on_data for topic " + endpoint_.topic);
  if (service_) service_->door = door_;
  if (endpoint_.settings.intra_process) check_intra_process(endpoint_.quality, dispatch_, endpoint_.topic);
}

Reader::~Reader() {
  door_->close();
  inlet_.reset();
}

void Reader::attach(Waitset& waitset) {
  if (dispatch_ != LAGOMETER_DISPATCH_WAITSET || waitset_ != nullptr || inlet_) {
    throw Error(LAGOMETER_INVALID,
                "ros2: a reader is attached to one waitset, before it is enabled, with dispatch by waitset");
  }
  waitset_ = &waitset;
}

void Reader::enable() {
  if (dispatch_ == LAGOMETER_DISPATCH_WAITSET && waitset_ == nullptr)
    throw Error(LAGOMETER_INVALID, "ros2: dispatch by waitset without a waitset on " + endpoint_.topic);
  inlet_ = service_ ? service_->inlet()
                    : with_message_type(endpoint_.type.name, endpoint_.type.max_bytes, [&](auto example) {
                        std::unique_ptr<Inlet> inlet =
                            std::make_unique<TypedInlet<decltype(example)>>(endpoint_, dispatch_, door_, missed_);
                        return inlet;
                      });
  if (waitset_ != nullptr) inlet_->join(*waitset_);
}

void Reader::arrived(Arrived&& arrived) {
  arrivals_.push(std::move(arrived));
  on_data_(user_);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (max == 0) return LAGOMETER_OK;
  // One at a time, as with callbacks: no message is deserialised before the previous one was handled.
  Arrived* lent = arrivals_.lend();
  if (lent == nullptr && dispatch_ != LAGOMETER_DISPATCH_LISTENER) {
    Arrived next;
    if (!inlet_->take(next)) return LAGOMETER_OK;
    arrivals_.push(std::move(next));
    lent = arrivals_.lend();
  }
  if (lent == nullptr) return LAGOMETER_OK;
  lagometer_sample& sample = *samples;
  sample.flags = 0;
  sample.region_count = lent->regions.count;
  std::copy_n(lent->regions.region, lent->regions.count, sample.regions);
  sample.writer_id = lent->writer_id;
  sample.middleware_sequence = lent->sequence;
  sample.source_time_ns = lent->source_ns;
  sample.source_clock = lent->source_ns != 0 ? LAGOMETER_CLOCK_WALL : LAGOMETER_CLOCK_NONE;
  sample.reception_time_ns = lent->reception_ns;
  sample.reception_clock = lent->reception_ns != 0 ? LAGOMETER_CLOCK_WALL : LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = 0;
  sample.adapter_data = lent;
  taken = 1;
  return LAGOMETER_OK;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t index = 0; index < count; ++index)
    arrivals_.give_back(static_cast<Arrived*>(sample_at(samples, stride, index).adapter_data));
}

void Reader::matched(lagometer_matched& out) const {
  out.count = 0;
  out.exact = 0;
  if (inlet_) inlet_->matched(out);
}

void Reader::counters(lagometer_counters& out) const {
  out.present = 0;
  if (inlet_) inlet_->counters(out);
}

nlohmann::json Reader::describe() const {
  nlohmann::json paste = nlohmann::json::array();
  paste.push_back({{"file", "where the node subscribes"}, {"text", endpoint_.quality.code()}});
  return {{"settings", endpoint_.quality.describe()}, {"paste", paste}};
}

}  // namespace lagometer::ros2
