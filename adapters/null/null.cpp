// SPDX-License-Identifier: Apache-2.0
// The null adapter: hands a message from one node to another within a process, without copying it. It is the template to
// start an adapter from, the double that tests use, and the floor for cells within one process.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "lagometer/adapter.h"

namespace {

const lagometer_host* host;

struct Message {
  std::vector<uint8_t> payload;
  uint64_t bytes = 0;
  int users = 0;  // readers that still hold it
};

}  // namespace

// An adapter defines the opaque types as it likes; the engine only carries pointers to them.
struct lagometer_context { uint32_t domain; };
struct lagometer_node { lagometer_context* context; };
struct lagometer_type { uint64_t max_bytes; };
struct lagometer_waitset {
  std::condition_variable changed;
  std::vector<lagometer_reader*> readers;
  bool triggered = false;
};
struct Endpoint {
  uint32_t domain = 0;
  std::string topic;
  uint64_t max_bytes = 0;
  size_t depth = 1;
  bool keep_all = false;
};
struct lagometer_writer : Endpoint { std::vector<Message> pool; lagometer_counters counters{}; };
struct lagometer_reader : Endpoint {
  std::deque<Message*> queue;
  lagometer_waitset* waitset = nullptr;
  lagometer_counters counters{};
};

namespace {

std::mutex mutex;  // guards everything below and the fields above; a middleware would do better
std::vector<lagometer_reader*> readers;
std::vector<lagometer_writer*> writers;
std::condition_variable released;
constexpr size_t kInFlight = 65;  // one being written, and what readers have taken and not released

bool meets(const Endpoint& a, const Endpoint& b) { return a.domain == b.domain && a.topic == b.topic && a.max_bytes == b.max_bytes; }

template <typename Other>
uint32_t matches(const Endpoint& own, const std::vector<Other*>& others) {
  const std::lock_guard lock(mutex);
  return static_cast<uint32_t>(std::count_if(others.begin(), others.end(), [&](const Other* other) { return meets(own, *other); }));
}

lagometer_status fail(const std::string& text, lagometer_status status) {
  host->fail(host->self, {text.data(), text.size()});
  return status;
}

// Every failure is said before it is returned; no exception leaves this library.
template <typename Object, typename Handle>
lagometer_status create(const lagometer_node* node, const lagometer_endpoint_config* config, std::vector<Object*>& all, Handle** out) try {
  if ((config->qos->present & LAGOMETER_QOS_DURABILITY) != 0 && config->qos->durability != LAGOMETER_VOLATILE) return fail("null has no transient-local; use durability: volatile", LAGOMETER_UNSUPPORTED);
  auto object = std::make_unique<Object>();
  object->domain = node->context->domain;
  object->topic.assign(config->topic.data, config->topic.size);
  object->max_bytes = config->type->max_bytes;
  object->keep_all = config->qos->history == LAGOMETER_KEEP_ALL;
  object->depth = object->keep_all ? kInFlight : std::max(1U, config->qos->depth);
  if constexpr (std::is_same_v<Object, lagometer_writer>) object->pool.resize(object->depth + kInFlight, Message{std::vector<uint8_t>(object->max_bytes)});
  const std::lock_guard lock(mutex);
  all.push_back(object.get());
  *out = object.release();
  return LAGOMETER_OK;
} catch (const std::bad_alloc&) {
  return fail("null: no memory for a pool of messages", LAGOMETER_NO_RESOURCE);
}

template <typename Object>
void destroy(Object* object, std::vector<Object*>& all) {
  const std::lock_guard lock(mutex);
  std::erase(all, object);
  delete object;
}

lagometer_status borrow(lagometer_writer* writer, uint64_t bytes, lagometer_message* message) noexcept {
  if (bytes > writer->max_bytes) return fail("null: message larger than its type", LAGOMETER_INVALID);
  std::unique_lock lock(mutex);
  auto free = writer->pool.end();
  const auto found = [&] { return (free = std::find_if(writer->pool.begin(), writer->pool.end(), [](const Message& m) { return m.users == 0; })) != writer->pool.end(); };
  if (!found() && (!writer->keep_all || !released.wait_for(lock, std::chrono::seconds(1), found))) return ++writer->counters.rejected, LAGOMETER_REJECTED;
  free->bytes = bytes;
  *message = {sizeof *message, LAGOMETER_ABI_VERSION, LAGOMETER_ORIGIN_LOANED, 1, {{free->payload.data(), bytes}}, &*free};
  return LAGOMETER_OK;
}

lagometer_status commit(lagometer_writer* writer, lagometer_message* message) noexcept {
  auto* sent = static_cast<Message*>(message->adapter_data);
  const std::lock_guard lock(mutex);
  for (lagometer_reader* reader : readers) {
    if (!meets(*reader, *writer)) continue;
    if (!reader->keep_all && reader->queue.size() == reader->depth) {
      --reader->queue.front()->users;
      reader->queue.pop_front();
      ++reader->counters.overwritten;
    }
    reader->queue.push_back(sent);
    ++sent->users;
    if (reader->waitset != nullptr) reader->waitset->changed.notify_one();
  }
  return LAGOMETER_OK;
}

lagometer_status take(lagometer_reader* reader, lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t* taken) noexcept {
  const std::lock_guard lock(mutex);
  for (*taken = 0; *taken < max && !reader->queue.empty(); ++*taken, reader->queue.pop_front()) {
    auto* sample = reinterpret_cast<lagometer_sample*>(reinterpret_cast<char*>(samples) + size_t{stride} * *taken);
    Message* message = reader->queue.front();
    *sample = {.size = sizeof *sample, .abi_version = LAGOMETER_ABI_VERSION, .flags = LAGOMETER_SAMPLE_LOANED, .region_count = 1, .regions = {{message->payload.data(), message->bytes}}, .writer_id = 0, .middleware_sequence = 0, .source_time_ns = 0, .reception_time_ns = 0, .source_clock = LAGOMETER_CLOCK_NONE, .reception_clock = LAGOMETER_CLOCK_NONE, .signalled_ns = 0, .signalled_cpu = 0, .reserved = 0, .adapter_data = message};
  }
  return LAGOMETER_OK;
}

void release(lagometer_reader*, lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  const std::lock_guard lock(mutex);
  for (uint32_t i = 0; i < count; ++i) --static_cast<Message*>(reinterpret_cast<lagometer_sample*>(reinterpret_cast<char*>(samples) + size_t{stride} * i)->adapter_data)->users;
  released.notify_all();
}

lagometer_status wait(lagometer_waitset* waitset, int64_t until_ns) noexcept {
  using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC, the host's clock
  const auto ready = [&] { return waitset->triggered || std::any_of(waitset->readers.begin(), waitset->readers.end(), [](const lagometer_reader* r) { return !r->queue.empty(); }); };
  std::unique_lock lock(mutex);
  const Clock::time_point until{std::chrono::nanoseconds(std::min(until_ns, int64_t{1} << 62))};
  const bool woken = waitset->changed.wait_until(lock, until, ready);
  waitset->triggered = false;
  return woken ? LAGOMETER_OK : LAGOMETER_TIMEOUT;
}

constexpr lagometer_adapter_table kTable = {
    .size = sizeof(lagometer_adapter_table), .abi_version = LAGOMETER_ABI_VERSION, .name = {"null", 4},
    .probe = [](lagometer_string, lagometer_sink sink, void* user) noexcept { return sink(user, {R"({"version":"1","abilities":{},"limits":{}})", 42}), LAGOMETER_OK; },
    .context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept { return *out = new lagometer_context{config->domain}, LAGOMETER_OK; },
    .context_enable = [](lagometer_context*) noexcept { return LAGOMETER_OK; },
    .node_create = [](lagometer_context* context, lagometer_string, lagometer_node** out) noexcept { return *out = new lagometer_node{context}, LAGOMETER_OK; },
    .type_create = [](lagometer_context*, const lagometer_type_config* config, lagometer_type** out) noexcept { return *out = new lagometer_type{config->max_bytes}, LAGOMETER_OK; },
    .writer_create = [](lagometer_node* node, const lagometer_endpoint_config* config, lagometer_writer** out) noexcept { return create(node, config, writers, out); },
    .writer_enable = [](lagometer_writer*) noexcept { return LAGOMETER_OK; },
    .reader_create = [](lagometer_node* node, const lagometer_endpoint_config* config, lagometer_reader** out) noexcept { return create(node, config, readers, out); },
    .reader_enable = [](lagometer_reader*) noexcept { return LAGOMETER_OK; },
    .reader_destroy = [](lagometer_reader* reader) noexcept { destroy(reader, readers); },
    .writer_destroy = [](lagometer_writer* writer) noexcept { destroy(writer, writers); },
    .type_destroy = [](lagometer_type* type) noexcept { delete type; },
    .node_destroy = [](lagometer_node* node) noexcept { delete node; },
    .context_destroy = [](lagometer_context* context) noexcept { delete context; },
    .borrow = borrow, .commit = commit, .discard = [](lagometer_writer*, lagometer_message*) noexcept {}, .take = take, .release = release,
    .writer_matched = [](lagometer_writer* w, lagometer_matched* out) noexcept { return out->count = matches(*w, readers), out->exact = 1, LAGOMETER_OK; },
    .reader_matched = [](lagometer_reader* r, lagometer_matched* out) noexcept { return out->count = matches(*r, writers), out->exact = 1, LAGOMETER_OK; },
    .writer_counters = [](lagometer_writer* w, lagometer_counters* out) noexcept { return out->present = LAGOMETER_COUNTER_REJECTED, out->rejected = w->counters.rejected, LAGOMETER_OK; },
    .reader_counters = [](lagometer_reader* r, lagometer_counters* out) noexcept { return out->present = LAGOMETER_COUNTER_OVERWRITTEN, out->overwritten = r->counters.overwritten, LAGOMETER_OK; },
    .describe = [](uint32_t, const void*, lagometer_sink sink, void* user) noexcept { return sink(user, {R"({"settings":{},"paste":[]})", 26}), LAGOMETER_OK; },
    .waitset_create = [](lagometer_context*, lagometer_waitset** out) noexcept { return *out = new lagometer_waitset, LAGOMETER_OK; },
    .waitset_attach = [](lagometer_waitset* waitset, lagometer_reader* reader) noexcept { return waitset->readers.push_back(reader), reader->waitset = waitset, LAGOMETER_OK; },
    .waitset_wait = wait,
    .waitset_trigger = [](lagometer_waitset* waitset) noexcept { { const std::lock_guard lock(mutex); waitset->triggered = true; } waitset->changed.notify_one(); },
    .waitset_destroy = [](lagometer_waitset* waitset) noexcept { const std::lock_guard lock(mutex); for (lagometer_reader* reader : waitset->readers) reader->waitset = nullptr; delete waitset; },
    .extension = [](uint32_t, void*, lagometer_string) noexcept -> const void* { return nullptr; }};

}  // namespace

extern "C" const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) noexcept {
  host = given;
  return given->abi_version >= LAGOMETER_ABI_VERSION ? &kTable : nullptr;
}
