// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <utility>

#include "thread_sanitizer.hpp"

namespace lagometer::iceoryx {

Reader::Reader(Node& node, const lagometer_endpoint_config& config) : context_(node.context), endpoint_(config) {}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : context_(node.context), endpoint_(config), service_(std::move(service)) {}

Reader::~Reader() {
  if (service_) {
    if (listening_) service_->stop_listening(context_.listener());
    return;
  }
  if (listening_) context_.listener().detachEvent(*subscriber_, iox::popo::SubscriberEvent::DATA_RECEIVED);
}

void Reader::enable() {
  if (service_) {
    service_->open();
    if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
      service_->listen(context_.listener());
      listening_ = true;
    }
    return;
  }
  iox::popo::SubscriberOptions options = endpoint_.subscriber_options();
  // RouDi connects subscribers that subscribe from the start at once, others at its next scan, up to 100 ms later. If
  // iceoryx's thread must see the very first message, it has to listen before there can be one.
  const bool listens = endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER;
  options.subscribeOnCreate = !listens;
  subscriber_ =
      std::make_unique<iox::popo::UntypedSubscriber>(context_.service(endpoint_.type, endpoint_.topic), options);
  if (listens) listen();
}

void Reader::listen() {
  const auto attached = context_.listener().attachEvent(*subscriber_, iox::popo::SubscriberEvent::DATA_RECEIVED,
                                                        iox::popo::createNotificationCallback(on_data, *this));
  if (attached.has_error())
    throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: a listener serves at most " +
                                           std::to_string(iox::popo::Listener::capacity()) +
                                           " subscribers, and topic '" + endpoint_.topic + "' is one more");
  listening_ = true;
  subscriber_->subscribe();
}

void Reader::on_data(iox::popo::UntypedSubscriber* /*unused*/, Reader* self) noexcept {
  self->endpoint_.on_data(self->endpoint_.user);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (service_) return take_of_service(samples, stride, max, taken);
  while (subscriber_ && taken < max) {
    const auto chunk = subscriber_->take();
    if (chunk.has_error()) {
      if (chunk.get_error() == iox::popo::ChunkReceiveResult::NO_CHUNK_AVAILABLE || taken > 0) break;
      throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: topic '" + endpoint_.topic + "': more than " +
                                             std::to_string(iox::MAX_CHUNKS_HELD_PER_SUBSCRIBER_SIMULTANEOUSLY) +
                                             " messages are taken and not released");
    }
    const auto* const header = iox::mepoo::ChunkHeader::fromUserPayload(chunk.value());
    show(chunk.value(), *header, sample_at(samples, stride, taken++));
  }
  return LAGOMETER_OK;
}

lagometer_status Reader::take_of_service(lagometer_sample* samples, uint32_t stride, uint32_t max,
                                         uint32_t& taken) noexcept {
  while (taken < max) {
    const void* const payload = service_->take();
    if (payload == nullptr) break;
    show(payload, *iox::mepoo::ChunkHeader::fromUserPayload(payload), sample_at(samples, stride, taken++));
  }
  return LAGOMETER_OK;
}

void Reader::show(const void* payload, const iox::mepoo::ChunkHeader& header, lagometer_sample& sample) noexcept {
  void* const memory = const_cast<void*>(payload);
  was_passed(memory);
  sample.flags = LAGOMETER_SAMPLE_LOANED;
  sample.region_count = 1;
  // The engine only reads; the type of a region has no const.
  sample.regions[0] = {static_cast<uint8_t*>(memory), header.userPayloadSize()};
  sample.writer_id = static_cast<uint64_t>(header.originId());
  sample.middleware_sequence = header.sequenceNumber() + 1;  // iceoryx counts from 0, which here means unknown
  sample.source_time_ns = sample.reception_time_ns = 0;
  sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = 0;
  sample.signalled_cpu = 0;
  sample.reserved = 0;
  sample.adapter_data = memory;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    void* const memory = sample_at(samples, stride, number).adapter_data;
    passes_on(memory);
    if (service_) {
      service_->release(memory);
    } else {
      subscriber_->release(memory);
    }
  }
}

void Reader::matched(lagometer_matched& out) const noexcept {
  const auto count = service_ ? service_->counterparts() : std::nullopt;
  out.count = count.value_or(0);
  out.exact = count ? 0 : 2;
}

nlohmann::json Reader::describe() const {
  using nlohmann::json;
  if (service_) return service_->describe();
  const iox::popo::SubscriberOptions options = endpoint_.subscriber_options();
  json settings = json::object();
  if (options.queueCapacity != queue_max)
    settings["SubscriberOptions.queueCapacity"] = {{"value", options.queueCapacity}, {"default", queue_max}};
  if (options.historyRequest != 0)
    settings["SubscriberOptions.historyRequest"] = {{"value", options.historyRequest}, {"default", 0}};
  if (endpoint_.keep_all)
    settings["SubscriberOptions.queueFullPolicy"] = {{"value", "BLOCK_PRODUCER"}, {"default", "DISCARD_OLDEST_DATA"}};
  return {{"settings", settings}, {"paste", json::array()}};
}

}  // namespace lagometer::iceoryx
