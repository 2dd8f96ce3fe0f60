// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace lagometer::lcm {

namespace {

/// Places for messages on their way from the handler to the taker: a few, but not many large ones.
uint32_t count_places(uint64_t bytes_max) noexcept {
  constexpr uint64_t together_bytes = 16ULL << 20;
  return static_cast<uint32_t>(std::clamp<uint64_t>(together_bytes / bytes_max, 2, 32));
}

}  // namespace

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      channel_(to_channel(endpoint_.topic)),
      place_count_(count_places(endpoint_.type.bytes_max)),
      places_(std::make_unique<Place[]>(place_count_)) {
  for (uint32_t index = 0; index < place_count_; ++index) places_[index].payload.resize(endpoint_.type.bytes_max);
}

Reader::~Reader() {
  if (subscribed_) instance_->unsubscribe(*this);
}

void Reader::join(std::shared_ptr<Instance> instance) {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_WAITSET || subscribed_) {
    throw Error(LAGOMETER_INVALID,
                "lcm: a reader is attached to a waitset before it is enabled, with dispatch by waitset");
  }
  instance_ = std::move(instance);
}

void Reader::enable() {
  const bool listens = endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER;
  if (!instance_) instance_ = listens ? context_.instance() : context_.new_instance();
  instance_->subscribe(channel_, *this, endpoint_.depth_asked.value_or(0));
  subscribed_ = true;
  if (listens) context_.serve_listeners();
}

bool Reader::has_room() const noexcept {
  return places_[next_filled_].state.load(std::memory_order_acquire) == Place::State::free;
}

bool Reader::has_data() const noexcept {
  return places_[next_taken_].state.load(std::memory_order_acquire) == Place::State::filled;
}

void Reader::receive(const lcm_recv_buf_t& buffer) noexcept {
  Place& place = places_[next_filled_];
  place.handler_ns = now_ns();
  if (!endpoint_.type.accepts(buffer.data_size)) return wrong_bytes_.store(buffer.data_size);
  if (!has_room()) return;  // the listener does not take
  place.handler_cpu = static_cast<uint32_t>(sched_getcpu());
  std::memcpy(place.payload.data(), buffer.data, buffer.data_size);
  place.bytes = buffer.data_size;
  place.state.store(Place::State::filled, std::memory_order_release);
  next_filled_ = after(next_filled_);
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) endpoint_.on_data(endpoint_.user);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (max == 0) return LAGOMETER_OK;
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_LISTENER && subscribed_) {
    while (!has_data() && instance_->handle_if_any()) {
    }
  }
  if (const uint64_t bytes = wrong_bytes_.exchange(0); bytes != 0) endpoint_.type.check(bytes);
  if (!has_data()) return LAGOMETER_OK;
  Place& place = places_[next_taken_];
  place.state.store(Place::State::taken, std::memory_order_relaxed);
  next_taken_ = after(next_taken_);
  show(sample_at(samples, stride, 0), place);
  taken = 1;
  return LAGOMETER_OK;
}

void Reader::show(lagometer_sample& sample, Place& place) const noexcept {
  brokerless::show(sample, place.payload.data(), place.bytes, false);
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
    sample.signalled_ns = place.handler_ns;
    sample.signalled_cpu = place.handler_cpu;
  }
  sample.adapter_data = &place;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    auto& place = *static_cast<Place*>(sample_at(samples, stride, number).adapter_data);
    place.state.store(Place::State::free, std::memory_order_release);
  }
}

void Reader::matched(lagometer_matched& out) const noexcept {
  out.count = 0;
  out.exact = 2;  // a multicast socket does not know who sends to it
}

std::string Reader::describe() const {
  constexpr int queue_default = 30;
  nlohmann::json settings = nlohmann::json::object();
  nlohmann::json paste = nlohmann::json::array();
  if (const int depth = endpoint_.depth_asked.value_or(queue_default); depth != queue_default) {
    settings["queue_capacity"] = {{"value", depth}, {"default", queue_default}};
    paste.push_back({{"file", "a C program, after lcm_subscribe()"},
                     {"text", "lcm_subscription_set_queue_capacity(subscription, " + std::to_string(depth) + ");\n"}});
  }
  return nlohmann::json{{"settings", settings}, {"paste", paste}}.dump();
}

}  // namespace lagometer::lcm
