// SPDX-License-Identifier: Apache-2.0
// The null adapter passes a message within a process, without copying it: a template, the test double, and a floor.
#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <tuple>
#include <vector>

#include <lagometer/binding.hpp>

namespace {
using namespace lagometer;
/// A message in its writer's pool; `users` counts the readers that hold it, and so keep the pool.
struct Message {
  std::vector<uint8_t> payload;
  uint64_t bytes = 0;
  int users = 0;
};
using Pool = std::vector<Message>;

struct Context : Plain {
  explicit Context(const lagometer_context_config& config) : domain(config.domain) { refuse_settings("null", config); }
  uint32_t domain;
};
using Node = PlainNode<Context>;
using Type = PlainType<Context>;
std::mutex mutex;  // protects the whole middleware: the enabled readers
std::vector<struct Reader*> readers;
std::list<Pool> orphans;  // of destroyed writers, while a reader still uses one of their messages
bool unused(const Pool& pool) { return std::ranges::count(pool, 0, &Message::users) == std::ssize(pool); }
constexpr Supported kSupported{1U << LAGOMETER_DISPATCH_POLL | 1U << LAGOMETER_DISPATCH_WAITSET,
                               1U << LAGOMETER_BEST_EFFORT | 1U << LAGOMETER_RELIABLE, 1U << LAGOMETER_KEEP_LAST,
                               1U << LAGOMETER_VOLATILE};
constexpr size_t kInFlight = 65;  // one being written, and those that readers have taken but not released

struct Endpoint : Plain {
  Endpoint(Node& node, const lagometer_endpoint_config& config)
      : type(*reinterpret_cast<Type*>(config.type)),
        where(node.context.domain, view(config.topic), type.bytes_max),
        depth(std::max(1U, config.qos->depth)) {
    check_endpoint("null", config, kSupported);
  }
  Type type;
  std::tuple<uint32_t, std::string, uint64_t> where;  // domain, topic, size: endpoints match if it is the same
  size_t depth;
};

struct Reader : Endpoint {
  Reader(Node& node, const lagometer_endpoint_config& config) : Endpoint(node, config) { queue.reserve(depth); }
  ~Reader() {
    const std::lock_guard lock(mutex);
    std::erase(readers, this);
    for (Message* message : queue) --message->users;
  }
  void enable() {
    const std::lock_guard lock(mutex);
    readers.push_back(this);
  }
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
    const std::lock_guard lock(mutex);
    taken = std::min(max, static_cast<uint32_t>(queue.size()));
    for (uint32_t i = 0; i < taken; ++i) {
      lagometer_sample& sample = sample_at(samples, stride, i);
      sample.flags = LAGOMETER_SAMPLE_LOANED, sample.region_count = 1;
      sample.regions[0] = {queue[i]->payload.data(), queue[i]->bytes};
      sample.signalled_ns = 0;  // the middleware has no thread: nothing to observe
      sample.adapter_data = queue[i];
    }
    queue.erase(queue.begin(), queue.begin() + taken);
    return LAGOMETER_OK;
  }
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) {
    const std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < count; ++i) --static_cast<Message*>(sample_at(samples, stride, i).adapter_data)->users;
    std::erase_if(orphans, unused);
  }
  void hand_over(Message& message) {
    if (queue.size() == depth) {  // keep_last: drop the oldest
      --queue.front()->users, queue.erase(queue.begin());
    }
    queue.push_back(&message);
    ++message.users;
    if (changed != nullptr) changed->notify_one();
  }
  std::vector<Message*> queue;                 // as much room as its depth: nothing is allocated later
  std::condition_variable* changed = nullptr;  // of its waitset
};

struct Waitset {
  explicit Waitset(Context&) {}
  void attach(Reader& reader) {
    attached.push_back(&reader);
    reader.changed = &changed;
  }
  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
    const auto has_data = [](const Reader* reader) { return !reader->queue.empty(); };
    std::unique_lock lock(mutex);
    const bool woken = changed.wait_until(lock, deadline(until_ns),
                                          [&] { return triggered || std::ranges::any_of(attached, has_data); });
    triggered = false;
    count = name_ready(attached, places, has_data);
    return woken ? LAGOMETER_OK : LAGOMETER_TIMEOUT;
  }
  void trigger() {
    const std::lock_guard lock(mutex);
    triggered = true, changed.notify_one();
  }
  std::condition_variable changed;
  std::vector<Reader*> attached;
  bool triggered = false;
};

struct Writer : Endpoint {
  Writer(Node& node, const lagometer_endpoint_config& config)
      : Endpoint(node, config), pool(depth + kInFlight, Message{std::vector<uint8_t>(type.bytes_max)}) {}
  ~Writer() {
    const std::lock_guard lock(mutex);
    const auto drop = [this](Message* m) { return m >= &pool.front() && m <= &pool.back() && --m->users >= 0; };
    for (Reader* reader : readers) std::erase_if(reader->queue, drop);
    if (!unused(pool)) orphans.push_back(std::move(pool));
  }
  lagometer_status borrow(uint64_t bytes, lagometer_message& message) {
    type.check(bytes);
    const std::lock_guard lock(mutex);
    const auto free = std::ranges::find(pool, 0, &Message::users);
    if (free == pool.end()) return LAGOMETER_REJECTED;
    free->bytes = bytes;
    message.origin = LAGOMETER_ORIGIN_LOANED, message.region_count = 1;
    message.regions[0] = {free->payload.data(), bytes};
    message.adapter_data = &*free;
    return LAGOMETER_OK;
  }
  lagometer_status commit(lagometer_message& message) {
    const std::lock_guard lock(mutex);
    for (Reader* reader : readers)
      if (reader->where == where) reader->hand_over(*static_cast<Message*>(message.adapter_data));
    return LAGOMETER_OK;
  }
  Pool pool;
};

struct Traits : PlainTraits, Parts<Context, Node, Type, Writer, Reader, Waitset> {
  static constexpr std::string_view name = "null";
  static std::string probe(std::string_view) { return R"({"version":"1","abilities":{"waitset_contexts":true}})"; }
  static std::string describe(uint32_t, const void*) { return R"({"transport":{"within_process":["process"]}})"; }
};
}  // namespace

LAGOMETER_EXPORT_ADAPTER(Traits)
