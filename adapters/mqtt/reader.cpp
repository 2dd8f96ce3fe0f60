// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "objects.hpp"

namespace lagometer::mqtt {

namespace {

constexpr uint32_t kSlots = 4;  // created at the start; with quality 1 and 2, one read may deliver several messages

/// The reader whose listener this thread is in.
thread_local const Reader* listening = nullptr;

}  // namespace

Inbox::Inbox(uint64_t bytes_max) : bytes_max_(bytes_max) {
  for (uint32_t count = 0; count < kSlots; ++count) grow();
}

void Inbox::grow() {
  auto slot = std::make_unique<Slot>();
  slot->buffer = sockets::AlignedBuffer(bytes_max_);
  slot->next = free_;
  free_ = slot.get();
  slots_.push_back(std::move(slot));
}

void Inbox::push(const mosquitto_message& message) {
  const std::scoped_lock lock(mutex_);
  if (free_ == nullptr) grow();
  Slot* const slot = std::exchange(free_, free_->next);
  slot->next = nullptr;
  slot->bytes = static_cast<uint64_t>(message.payloadlen);
  std::memcpy(slot->buffer.data(), message.payload, slot->bytes);
  if (last_ == nullptr) {
    first_ = slot;
  } else {
    last_->next = slot;
  }
  last_ = slot;
}

Inbox::Slot* Inbox::pop() noexcept {
  const std::scoped_lock lock(mutex_);
  Slot* const slot = first_;
  if (slot == nullptr) return nullptr;
  first_ = slot->next;
  if (first_ == nullptr) last_ = nullptr;
  return slot;
}

void Inbox::give_back(Slot* slot) noexcept {
  const std::scoped_lock lock(mutex_);
  slot->next = std::exchange(free_, slot);
}

bool Inbox::empty() noexcept {
  const std::scoped_lock lock(mutex_);
  return first_ == nullptr;
}

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : Receiver(std::string(view(config.topic))),
      context_(node.context),
      endpoint_(Type::endpoint(config)),
      quality_(context_.settings().quality(endpoint_.reliable)),
      inbox_(endpoint_.type.bytes_max) {}

Reader::~Reader() {
  if (client_ != nullptr) client_->unsubscribe(*this, slot_);
}

void Reader::enable() {
  Client* client = nullptr;
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
    client = &context_.shared_client();
  } else {
    own_ = std::make_unique<Client>(context_.settings(), Client::Run::by_caller);
    client = own_.get();
  }
  slot_ = client->subscribe(*this, quality_);
  client_ = client;
}

void Reader::arrived(const mosquitto_message& message) noexcept {
  static_cast<void>(guarded([&] {
    if (message.payloadlen < 0 || !endpoint_.type.accepts(static_cast<uint64_t>(message.payloadlen))) {
      log(LAGOMETER_LOG_WARNING, "topic '" + topic() + "': a message of another size was dropped");
    } else if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
      announce(message);
    } else {
      inbox_.push(message);
    }
    return LAGOMETER_OK;
  }));
}

void Reader::announce(const mosquitto_message& message) {
  const Reader* const before = std::exchange(listening, this);
  offered_ = &message;
  endpoint_.on_data(endpoint_.user);
  listening = before;
  if (offered_ == nullptr) return;
  // It was not taken inside the listener: kept, and announced again for a thread that checked before.
  offered_ = nullptr;
  inbox_.push(message);
  endpoint_.on_data(endpoint_.user);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (own_ != nullptr && inbox_.empty()) own_->read();
  const auto show = [&](uint8_t* data, uint64_t bytes, void* slot) {
    lagometer_sample& sample = sample_at(samples, stride, taken++);
    sample.flags = 0;
    sample.region_count = 1;
    sample.regions[0] = {data, bytes};
    sample.writer_id = sample.middleware_sequence = 0;
    sample.source_time_ns = sample.reception_time_ns = 0;
    sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
    sample.signalled_ns = 0;
    sample.signalled_cpu = sample.reserved = 0;
    sample.adapter_data = slot;
  };
  while (taken < max) {
    Inbox::Slot* const slot = inbox_.pop();
    if (slot == nullptr) break;
    show(slot->buffer.data(), slot->bytes, slot);
  }
  if (taken < max && listening == this && offered_ != nullptr) {
    // In place: it belongs to libmosquitto until the listener returns, as in any application.
    show(static_cast<uint8_t*>(offered_->payload), static_cast<uint64_t>(offered_->payloadlen), nullptr);
    offered_ = nullptr;
  }
  return LAGOMETER_OK;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    auto* const slot = static_cast<Inbox::Slot*>(sample_at(samples, stride, number).adapter_data);
    if (slot != nullptr) inbox_.give_back(slot);
  }
}

std::string Reader::describe() const {
  nlohmann::json settings{{"qos", {{"value", quality_}, {"default", 0}}}};
  if (client_ != nullptr) client_->describe(settings);
  return nlohmann::json{{"settings", settings}, {"paste", nlohmann::json::array()}}.dump();
}

}  // namespace lagometer::mqtt
