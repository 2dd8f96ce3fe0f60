// SPDX-License-Identifier: Apache-2.0
// Has executors (executor/1, timers/1), one for each node or one for all: each a thread that calls back one after
// another. A message is in its readers' queues when commit returns. With dispatch listener alone.
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "binding.hpp"
#include "lagometer/executor.h"
#include "lagometer/timers.h"

namespace {

using lagometer::Error;

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();

/// Something that an executor calls.
struct Callable {
  void (*callback)(void* user) = nullptr;
  void* user = nullptr;
  int64_t at_ns = kNever_ns;  // of a timer; of what is called for a message: how it is asked for
};

class Executor {
 public:
  Executor() : thread_([this] { run(); }) { pthread_setname_np(thread_.native_handle(), "executor"); }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void add(Callable& callable) {
    const std::lock_guard lock(mutex_);
    all_.push_back(&callable);
  }
  /// No callback of it runs afterwards.
  void remove(Callable& callable) {
    std::unique_lock lock(mutex_);
    std::erase(all_, &callable);
    changed_.wait(lock, [&] { return running_ != &callable; });
  }
  void call(Callable& callable, int64_t at_ns) {
    {
      const std::lock_guard lock(mutex_);
      callable.at_ns = at_ns;
    }
    changed_.notify_all();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      const auto earlier = [](const Callable* one, const Callable* other) { return one->at_ns < other->at_ns; };
      const auto next = std::ranges::min_element(all_, earlier);
      const int64_t at_ns = next == all_.end() ? kNever_ns : (*next)->at_ns;
      if (at_ns > lagometer::now_ns()) {
        changed_.wait_until(lock, lagometer::deadline(at_ns));
        continue;
      }
      Callable& callable = **next;
      callable.at_ns = kNever_ns;
      running_ = &callable;
      lock.unlock();
      callable.callback(callable.user);
      lock.lock();
      running_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Callable*> all_;
  const Callable* running_ = nullptr;
  bool ended_ = false;
  std::thread thread_;
};

struct Context : lagometer::Plain {
  explicit Context(const lagometer_context_config&) {}
  std::shared_ptr<Executor> for_node() {
    has_nodes = true;
    return shared != nullptr ? shared : std::make_shared<Executor>();
  }
  std::shared_ptr<Executor> shared;
  bool has_nodes = false;
};

struct Node {
  Node(Context& context, std::string_view) : executor(context.for_node()) {}
  std::shared_ptr<Executor> executor;
};

using Type = lagometer::PlainType<Context>;

struct Reader;
std::mutex mutex;  // guards who reads, and the readers' queues
std::vector<Reader*> readers;

struct Reader : lagometer::Plain {
  Reader(Node& node, const lagometer_endpoint_config& config)
      : topic(lagometer::view(config.topic)),
        executor(*node.executor),
        called{.callback = config.on_data, .user = config.user} {
    if (config.dispatch != LAGOMETER_DISPATCH_LISTENER)
      throw Error(LAGOMETER_UNSUPPORTED, "executing: listeners alone");
    executor.add(called);
  }
  ~Reader() {
    {
      const std::lock_guard lock(mutex);
      std::erase(readers, this);
    }
    executor.remove(called);
  }
  void enable() {
    const std::lock_guard lock(mutex);
    readers.push_back(this);
  }
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t, uint32_t& taken) {
    const std::lock_guard lock(mutex);
    taken = 0;
    if (queue.empty()) return LAGOMETER_OK;
    held = std::move(queue.front());
    queue.pop_front();
    // What is left is another callback's: the executor comes to its other nodes first.
    if (!queue.empty()) executor.call(called, lagometer::now_ns());
    lagometer_sample& sample = lagometer::sample_at(samples, stride, 0);
    sample.flags = 0;
    sample.region_count = 1;
    sample.regions[0] = {held.data(), held.size()};
    sample.signalled_ns = 0;
    taken = 1;
    return LAGOMETER_OK;
  }
  void release(lagometer_sample*, uint32_t, uint32_t) {}

  std::string topic;
  Executor& executor;
  Callable called;
  std::deque<std::vector<uint8_t>> queue;
  std::vector<uint8_t> held;
};

struct Writer : lagometer::Plain {
  Writer(Node&, const lagometer_endpoint_config& config)
      : topic(lagometer::view(config.topic)), buffer(reinterpret_cast<Type*>(config.type)->bytes_max) {}
  void enable() {}
  lagometer_status borrow(uint64_t bytes, lagometer_message& message) {
    message.origin = LAGOMETER_ORIGIN_COPIED;
    message.region_count = 1;
    message.regions[0] = {buffer.data(), bytes};
    return LAGOMETER_OK;
  }
  lagometer_status commit(lagometer_message& message) {
    const std::lock_guard lock(mutex);
    for (Reader* const reader : readers) {
      if (reader->topic != topic) continue;
      reader->queue.emplace_back(buffer.data(), buffer.data() + message.regions[0].size);
      reader->executor.call(reader->called, lagometer::now_ns());
    }
    return LAGOMETER_OK;
  }
  std::string topic;
  std::vector<uint8_t> buffer;
};

struct Waitset {
  explicit Waitset(Context&) { throw Error(LAGOMETER_UNSUPPORTED, "executing: listeners alone"); }
  void attach(Reader&) {}
  lagometer_status wait(int64_t) { return LAGOMETER_FAILED; }
  void trigger() {}
};

struct Timer {
  Timer(Executor& given, void (*callback)(void* user), void* user)
      : executor(given), called{.callback = callback, .user = user} {
    executor.add(called);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { executor.remove(called); }
  Executor& executor;
  Callable called;
};

constexpr lagometer_timers_table kTimers{
    .size = sizeof(lagometer_timers_table),
    .abi_version = LAGOMETER_ABI_VERSION,
    .create =
        [](lagometer_node* node, void (*callback)(void*), void* user, lagometer_timer** out) noexcept {
          return lagometer::guarded([&] {
            Executor& executor = *reinterpret_cast<Node*>(node)->executor;
            *out = reinterpret_cast<lagometer_timer*>(std::make_unique<Timer>(executor, callback, user).release());
            return LAGOMETER_OK;
          });
        },
    .arm = [](lagometer_timer* timer, int64_t at_ns) noexcept -> lagometer_status {
      Timer& self = *reinterpret_cast<Timer*>(timer);
      self.executor.call(self.called, at_ns);
      return LAGOMETER_OK;
    },
    .destroy = [](lagometer_timer* timer) noexcept { delete reinterpret_cast<Timer*>(timer); }};

constexpr lagometer_executor_table kExecutor{.size = sizeof(lagometer_executor_table),
                                             .abi_version = LAGOMETER_ABI_VERSION,
                                             .share = [](lagometer_context* given) noexcept -> lagometer_status {
                                               Context& context = *reinterpret_cast<Context*>(given);
                                               if (context.has_nodes) return LAGOMETER_INVALID;
                                               context.shared = std::make_shared<Executor>();
                                               return LAGOMETER_OK;
                                             }};

struct Traits : lagometer::PlainTraits, lagometer::Parts<Context, Node, Type, Writer, Reader, Waitset> {
  static constexpr std::string_view name = "executing";
  static std::string probe(std::string_view) { return R"({"version":"test","abilities":{},"limits":{}})"; }
  static const void* extension(uint32_t kind, void*, std::string_view wanted) noexcept {
    if (kind == LAGOMETER_OBJECT_CONTEXT && wanted == LAGOMETER_EXECUTOR_EXTENSION) return &kExecutor;
    return kind == LAGOMETER_OBJECT_NODE && wanted == LAGOMETER_TIMERS_EXTENSION ? &kTimers : nullptr;
  }
};

}  // namespace

LAGOMETER_EXPORT_ADAPTER(Traits)
