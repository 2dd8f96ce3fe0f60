// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <ros/publisher.h>

#include <boost/make_shared.hpp>
#include <utility>

#include "arrivals.hpp"
#include "messages.hpp"
#include "service_end.hpp"

namespace lagometer::ros1 {
namespace {

template <typename Message>
class TypedOutlet final : public Writer::Outlet {
 public:
  explicit TypedOutlet(const Endpoint& endpoint)
      : by_pointer_(endpoint.settings.by_pointer),
        publisher_(endpoint.ros_node.advertise<Message>(endpoint.topic, endpoint.quality.queue_size)),
        pool_([] { return boost::make_shared<Message>(); }) {
    if (!publisher_) throw Error(LAGOMETER_FAILED, "ros1: roscpp did not advertise topic " + endpoint.topic);
  }

  lagometer_region borrow(uint64_t bytes) override { return resized(*pool_.next(), bytes); }
  bool publish() override {
    if (by_pointer_)
      publisher_.publish(pool_.current());
    else
      publisher_.publish(*pool_.current());
    return true;
  }
  Note* note() override { return &pool_.current()->note; }
  void matched(lagometer_matched& out) const override {
    out.count = publisher_.getNumSubscribers();
    out.exact = 0;
  }

 private:
  bool by_pointer_;
  ros::Publisher publisher_;
  MessagePool<boost::shared_ptr<Message>, boost::shared_ptr<Message> (*)()> pool_;
};

std::unique_ptr<Writer::Outlet> make_outlet(const Endpoint& endpoint) {
  if (!endpoint.type.fixed) return std::make_unique<TypedOutlet<Bytes>>(endpoint);
  switch (endpoint.type.max_bytes) {
    case 64:
      return std::make_unique<TypedOutlet<Fixed<64>>>(endpoint);
    case 1024:
      return std::make_unique<TypedOutlet<Fixed<1024>>>(endpoint);
    case 65536:
      return std::make_unique<TypedOutlet<Fixed<65536>>>(endpoint);
    default:
      return std::make_unique<TypedOutlet<Fixed<1048576>>>(endpoint);
  }
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config) : endpoint_(node, config) {}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : endpoint_(node, config), service_(std::move(service)) {}

void Writer::enable() { outlet_ = service_ ? service_->outlet() : make_outlet(endpoint_); }

void Writer::answer(const lagometer_sample& request) {
  if (!outlet_) throw Error(LAGOMETER_INVALID, "ros1: answer() before enable on " + endpoint_.topic);
  outlet_->answer(*static_cast<const Arrived*>(request.adapter_data));
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  const Type& type = endpoint_.type;
  if (bytes > type.max_bytes || (type.fixed && bytes != type.max_bytes)) {
    throw Error(LAGOMETER_INVALID, "ros1: a message of " + std::to_string(bytes) + " bytes does not fit the type of " +
                                       std::to_string(type.max_bytes) + " bytes on topic " + endpoint_.topic);
  }
  message.origin = LAGOMETER_ORIGIN_NATIVE;
  message.region_count = 1;
  message.regions[0] = outlet_->borrow(bytes);
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(lagometer_message& message) {
  const bool stamped = stamped_layers_ != 0 && has_stamps(message);
  if (stamped ? publish_stamped(message) : outlet_->publish()) return LAGOMETER_OK;
  rejected_.fetch_add(1, std::memory_order_relaxed);
  return LAGOMETER_REJECTED;
}

// roscpp serialises within publish(), on this thread, if a subscriber in another process needs it.
bool Writer::publish_stamped(lagometer_message& message) {
  message.key = {};
  message.stamps.count = 0;
  Note* const note = outlet_->note();
  if (note == nullptr) return outlet_->publish();
  *note = Note{};
  note->wanted = (stamped_layers_ & LAGOMETER_STAMPS_SERIALISE) != 0;
  const lagometer_stamp entered = stamp_of(LAGOMETER_LAYER_WRITE);
  const bool sent = outlet_->publish();
  const lagometer_stamp left = stamp_of(LAGOMETER_LAYER_WRITE | LAGOMETER_LAYER_END);
  add_stamps(message.stamps, (stamped_layers_ & LAGOMETER_STAMPS_WRITE) != 0, entered,
             note->of(LAGOMETER_LAYER_SERIALISE), left);
  return sent;
}

void Writer::matched(lagometer_matched& out) const {
  out.count = 0;
  out.exact = 0;
  if (outlet_) outlet_->matched(out);
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = service_ ? LAGOMETER_COUNTER_REJECTED : 0;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

nlohmann::json Writer::describe() const {
  if (service_) return describe_service(endpoint_);
  return {{"settings", {{"queue_size", setting(endpoint_.quality.queue_size, nullptr)}}},
          {"paste", nlohmann::json::array()}};
}

}  // namespace lagometer::ros1
