// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <ros/message_event.h>
#include <ros/subscribe_options.h>

#include <boost/make_shared.hpp>
#include <utility>

#include "messages.hpp"
#include "service_end.hpp"

namespace lagometer::ros1 {

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : node_(node),
      endpoint_(node, config),
      dispatch_(config.dispatch),
      user_(config.user),
      on_data_(config.on_data),
      arrivals_(endpoint_.quality.queue_size) {
  if (dispatch_ > LAGOMETER_DISPATCH_LISTENER)
    throw Error(LAGOMETER_INVALID, "ros1: unknown dispatch mode for topic " + endpoint_.topic);
  if (dispatch_ == LAGOMETER_DISPATCH_LISTENER && on_data_ == nullptr)
    throw Error(LAGOMETER_INVALID, "ros1: dispatch by listener without on_data for topic " + endpoint_.topic);
}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : Reader(node, config) {
  service_ = std::move(service);
}

Reader::~Reader() {
  if (service_) service_->close();
  // Waits for a running callback; afterwards there is none.
  subscriber_.shutdown();
  if (queue_) queue_->held.fetch_sub(static_cast<int64_t>(arrivals_.waiting()), std::memory_order_relaxed);
}

void Reader::attach(std::shared_ptr<Queue> waited) {
  if (dispatch_ != LAGOMETER_DISPATCH_WAITSET || queue_) {
    throw Error(LAGOMETER_INVALID,
                "ros1: a reader is attached to one waitset, before it is enabled, with dispatch by waitset");
  }
  queue_ = std::move(waited);
}

void Reader::enable() {
  if (dispatch_ == LAGOMETER_DISPATCH_LISTENER) queue_ = node_.spun_queue();
  if (dispatch_ == LAGOMETER_DISPATCH_POLL) queue_ = std::make_shared<Queue>();
  if (!queue_) throw Error(LAGOMETER_INVALID, "ros1: dispatch by waitset without a waitset on " + endpoint_.topic);
  if (service_) return service_->open(*this, queue_);
  if (!endpoint_.type.fixed) return subscribe<Bytes>();
  if (endpoint_.type.max_bytes == 64) return subscribe<Fixed<64>>();
  if (endpoint_.type.max_bytes == 1024) return subscribe<Fixed<1024>>();
  if (endpoint_.type.max_bytes == 65536) return subscribe<Fixed<65536>>();
  subscribe<Fixed<1048576>>();
}

template <typename Message>
void Reader::subscribe() {
  using Event = ros::MessageEvent<const Message>;
  const boost::function<void(const Event&)> callback = [this](const Event& event) {
    const auto& message = event.getConstMessage();
    arrived({message, shown(*message), static_cast<int64_t>(event.getReceiptTime().toNSec()), nullptr, &message->note});
  };
  const bool noted = (stamped_layers_ & LAGOMETER_STAMPS_DESERIALISE) != 0;
  const boost::function<boost::shared_ptr<Message>()> create = [noted] {
    auto message = boost::make_shared<Message>();  // as roscpp does by default
    message->note.wanted = noted;
    return message;
  };
  ros::SubscribeOptions options;
  options.initByFullCallbackType<const Event&>(endpoint_.topic, endpoint_.quality.queue_size, callback, create);
  options.callback_queue = queue_.get();
  options.transport_hints = endpoint_.settings.hints(endpoint_.udp);
  subscriber_ = endpoint_.ros_node.subscribe(options);
  if (!subscriber_) throw Error(LAGOMETER_FAILED, "ros1: roscpp did not subscribe to topic " + endpoint_.topic);
}

void Reader::arrived(Arrived&& arrived) {
  if (!arrivals_.push(std::move(arrived))) queue_->held.fetch_add(1, std::memory_order_relaxed);
  if (dispatch_ == LAGOMETER_DISPATCH_LISTENER) on_data_(user_);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (max == 0) return LAGOMETER_OK;
  const bool stamped = stamped_layers_ != 0 && has_stamps(*samples);
  lagometer_stamp entered{};
  lagometer_stamp left{};
  // One at a time, as with callbacks: no message is deserialised before the previous one was handled.
  bool lent = lend(*samples);
  // The spinner delivers a listener's messages. All others wait in roscpp's queue and are deserialised here. If the
  // next one is for another reader of the waitset, it waits with that reader, so what follows keeps its order.
  if (!lent && dispatch_ != LAGOMETER_DISPATCH_LISTENER) {
    if (stamped) entered = stamp_of(LAGOMETER_LAYER_TAKE);
    queue_->callOne(ros::WallDuration());
    if (stamped) left = stamp_of(LAGOMETER_LAYER_TAKE | LAGOMETER_LAYER_END);
    lent = lend(*samples);
  }
  if (lent && stamped) show_stamps(*samples, entered, left);
  taken = lent ? 1 : 0;
  return LAGOMETER_OK;
}

// The message may have been deserialised before this call: by the spinner, or for another reader. If it was also
// delivered before, roscpp was not called for it here, and there is no `entered`.
void Reader::show_stamps(lagometer_sample& sample, const lagometer_stamp& entered,
                         const lagometer_stamp& left) const noexcept {
  const Note* const note = static_cast<const Arrived*>(sample.adapter_data)->note;
  const LayerNotes::Note* const work = note != nullptr ? note->of(LAGOMETER_LAYER_DESERIALISE) : nullptr;
  const bool called = entered.time_ns != 0 && (stamped_layers_ & LAGOMETER_STAMPS_TAKE) != 0;
  const bool earlier = work != nullptr && work->begin.time_ns < entered.time_ns;
  add_stamps(sample.stamps, called && !earlier, entered, work, left);
  if (!called || !earlier) return;
  add_stamp(sample.stamps, entered);
  add_stamp(sample.stamps, left);
}

bool Reader::lend(lagometer_sample& sample) noexcept {
  Arrived* const lent = arrivals_.lend();
  if (lent == nullptr) return false;
  queue_->held.fetch_sub(1, std::memory_order_relaxed);
  show(*lent, sample);
  sample.adapter_data = lent;
  return true;
}

void Reader::show(const Arrived& arrived, lagometer_sample& sample) noexcept {
  sample.flags = 0;
  sample.region_count = 1;
  sample.regions[0] = arrived.bytes;
  sample.writer_id = 0;
  sample.middleware_sequence = 0;
  sample.source_clock = LAGOMETER_CLOCK_NONE;
  sample.reception_time_ns = arrived.receipt_ns;
  sample.reception_clock = LAGOMETER_CLOCK_WALL;
  sample.signalled_ns = 0;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t index = 0; index < count; ++index) {
    auto* const arrived = static_cast<Arrived*>(sample_at(samples, stride, index).adapter_data);
    if (arrived->exchange) arrived->exchange->released();
    arrivals_.give_back(arrived);
  }
}

void Reader::matched(lagometer_matched& out) const {
  if (service_) return service_->matched(out);
  out.count = subscriber_.getNumPublishers();
  out.exact = 0;
}

nlohmann::json Reader::describe() const {
  if (service_) return describe_service(endpoint_);
  const std::string hints = endpoint_.settings.hints_code(endpoint_.udp);
  nlohmann::json settings{{"queue_size", setting(endpoint_.quality.queue_size, nullptr)}};
  nlohmann::json paste = nlohmann::json::array();
  if (endpoint_.udp) settings["transport"] = setting("UDPROS", "TCPROS");
  if (endpoint_.udp || endpoint_.settings.tcp_no_delay)
    paste.push_back({{"file", "where the node subscribes, the last argument of subscribe()"}, {"text", hints}});
  const nlohmann::json between = nlohmann::json::array({endpoint_.udp ? "udp" : "tcp"});
  const nlohmann::json transport{{"within_process", {"process"}}, {"between_processes", between}};
  return {{"settings", settings}, {"paste", paste}, {"transport", transport}};
}

}  // namespace lagometer::ros1
