// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <iceoryx_posh/internal/mepoo/memory_manager.hpp>
#include <iceoryx_posh/internal/popo/ports/publisher_port_data.hpp>
#include <iceoryx_posh/mepoo/chunk_header.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <thread>
#include <utility>

#include "thread_sanitizer.hpp"

namespace lagometer::iceoryx {

namespace {

using iox::mepoo::ChunkHeader;

ChunkHeader* header_of(const lagometer_message& message) noexcept {
  return static_cast<ChunkHeader*>(message.adapter_data);
}

/// RouDi's pools in the form of its configuration file.
std::string pools_as_toml(const iox::mepoo::MemoryManager& memory) {
  std::string text = "[general]\nversion = 1\n[[segment]]\n";
  for (uint32_t pool = 0; pool < memory.getNumberOfMemPools(); ++pool) {
    const auto info = memory.getMemPoolInfo(pool);
    text += "[[segment.mempool]]\nsize = " + std::to_string(info.m_chunkSize - sizeof(ChunkHeader)) +
            "\ncount = " + std::to_string(info.m_numChunks) + "\n";
  }
  return text;
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config) : context_(node.context), endpoint_(config) {}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : context_(node.context), endpoint_(config), service_(std::move(service)) {}

Writer::~Writer() {
  if (port_) port_->destroy();
}

void Writer::enable() {
  if (service_) return service_->open();
  forget_error();
  data_ = iox::runtime::PoshRuntime::getInstance().getMiddlewarePublisher(
      context_.service(endpoint_.type, endpoint_.topic), endpoint_.publisher_options());
  if (data_ == nullptr)
    throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: RouDi gave no publisher for topic '" + endpoint_.topic +
                                           "': " + (last_error() != nullptr ? last_error() : "it gave no reason"));
  port_.emplace(data_);
  require_pool();
}

void Writer::require_pool() const {
  const iox::mepoo::MemoryManager& memory = *data_->m_chunkSenderData.m_memoryMgr;
  uint64_t largest = 0;
  for (uint32_t pool = 0; pool < memory.getNumberOfMemPools(); ++pool)
    largest = std::max<uint64_t>(largest, memory.getMemPoolInfo(pool).m_chunkSize - sizeof(ChunkHeader));
  if (endpoint_.type.bytes_max <= largest) return;
  throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: topic '" + endpoint_.topic + "' has messages of up to " +
                                         std::to_string(endpoint_.type.bytes_max) +
                                         " bytes, and RouDi's largest mempool chunks of " + std::to_string(largest) +
                                         ": start it with a mempool that holds them (iox-roudi -c FILE)");
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  if (service_) return borrow_of_service(bytes, message);
  if (!port_) throw Error(LAGOMETER_INVALID, "iceoryx: borrow before enable on topic '" + endpoint_.topic + "'");
  auto chunk = port_->tryAllocateChunk(static_cast<uint32_t>(bytes), iox::CHUNK_DEFAULT_USER_PAYLOAD_ALIGNMENT);
  if (chunk.has_error()) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  lend(chunk.value()->userPayload(), bytes, chunk.value(), message);
  return LAGOMETER_OK;
}

lagometer_status Writer::borrow_of_service(uint64_t bytes, lagometer_message& message) {
  void* const payload = service_->loan(static_cast<uint32_t>(bytes));
  if (payload == nullptr) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  lend(payload, bytes, payload, message);
  return LAGOMETER_OK;
}

void Writer::lend(void* payload, uint64_t bytes, void* chunk, lagometer_message& message) noexcept {
  was_passed(payload);
  message.origin = LAGOMETER_ORIGIN_LOANED;
  message.region_count = 1;
  message.regions[0] = {static_cast<uint8_t*>(payload), bytes};
  message.adapter_data = chunk;
}

void Writer::answer(const lagometer_sample& request) {
  if (!service_) throw Error(LAGOMETER_INVALID, "iceoryx: only a server's writer can answer");
  service_->answer(request.adapter_data);
}

lagometer_status Writer::commit(lagometer_message& message) noexcept {
  if (service_) {
    passes_on(message.adapter_data);
    if (service_->send(message.adapter_data)) return LAGOMETER_OK;
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  if (endpoint_.keep_all && !wait_for_room()) {
    discard(message);
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  passes_on(message.regions[0].data);
  port_->sendChunk(header_of(message));
  return LAGOMETER_OK;
}

void Writer::discard(lagometer_message& message) noexcept {
  passes_on(message.regions[0].data);
  if (service_) return service_->discard(message.adapter_data);
  port_->releaseChunk(header_of(message));
}

bool Writer::has_room() const noexcept {
  Distributor& distributor = data_->m_chunkSenderData;
  const Distributor::LockGuard_t lock(distributor);
  return std::all_of(distributor.m_queues.begin(), distributor.m_queues.end(), [](auto& queue) noexcept {
    return queue->m_queueFullPolicy != iox::popo::QueueFullPolicy::BLOCK_PRODUCER ||
           queue->m_queue.size() < queue->m_queue.capacity();
  });
}

// iceoryx's own publishing also waits for room, but without limit: a subscriber that no longer takes anything would
// block the node forever. So this waits, for the requested time, and publishes when there is room.
bool Writer::wait_for_room() const noexcept {
  if (has_room()) return true;
  if (!endpoint_.reliable) return false;
  const int64_t until_ns = floor::later(now_ns(), endpoint_.blocking_ns_max);
  while (now_ns() < until_ns) {
    std::this_thread::yield();
    if (has_room()) return true;
  }
  return false;
}

void Writer::matched(lagometer_matched& out) const noexcept {
  out.exact = 0;
  out.count = 0;
  if (service_) {
    const auto count = service_->counterparts();
    out.count = count.value_or(0);
    out.exact = count ? 0 : 2;
    return;
  }
  if (data_ == nullptr) return;
  const Distributor& distributor = data_->m_chunkSenderData;
  const Distributor::LockGuard_t lock(distributor);
  out.count = static_cast<uint32_t>(distributor.m_queues.size());
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

nlohmann::json Writer::describe() const {
  using nlohmann::json;
  if (service_) return {{"settings", json::object()}, {"paste", json::array()}};
  const iox::popo::PublisherOptions options = endpoint_.publisher_options();
  json settings = json::object();
  if (options.historyCapacity != 0)
    settings["PublisherOptions.historyCapacity"] = {{"value", options.historyCapacity}, {"default", 0}};
  if (endpoint_.keep_all)
    settings["PublisherOptions.subscriberTooSlowPolicy"] = {{"value", "WAIT_FOR_CONSUMER"},
                                                            {"default", "DISCARD_OLDEST_DATA"}};
  json paste = json::array();
  if (data_ != nullptr)
    paste.push_back(
        {{"file", "roudi.toml, for iox-roudi -c"}, {"text", pools_as_toml(*data_->m_chunkSenderData.m_memoryMgr)}});
  return {{"settings", settings}, {"paste", paste}};
}

}  // namespace lagometer::iceoryx
