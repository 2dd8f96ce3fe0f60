// SPDX-License-Identifier: Apache-2.0
// A template for an adapter in C++ that needs only the installed headers. It copies messages within a process, keeps
// the newest, and calls a listener on each reader's own thread. Build it next to its adapter.json with
//   c++ -std=c++20 -O2 -shared -fPIC -fvisibility=hidden -I"$(lagometer adapters --include)" adapter.cpp -o in_cpp.so
#include <lagometer/binding.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

namespace {
using namespace lagometer;

constexpr uint64_t kShown = 64;  // messages between take and release, in addition to those that are waiting
// What adapter.json lists. Whatever else is asked for is refused: see check_endpoint, check_writer, refuse_settings.
constexpr Supported kSupported{1U << LAGOMETER_DISPATCH_POLL | 1U << LAGOMETER_DISPATCH_LISTENER,
                               1U << LAGOMETER_BEST_EFFORT, 1U << LAGOMETER_KEEP_LAST, 1U << LAGOMETER_VOLATILE};

struct Context : Plain {
  explicit Context(const lagometer_context_config& config) : domain(config.domain) {
    refuse_settings("in_cpp", config);
  }
  uint32_t domain;
};
using Node = PlainNode<Context>;
using Type = PlainType<Context>;

std::mutex mutex;  // protects `readers` and every reader's messages
std::vector<struct Reader*> readers;

struct Endpoint : Plain {
  Endpoint(Node& node, const lagometer_endpoint_config& config)
      : type(*reinterpret_cast<Type*>(config.type)),
        place(node.context.domain, view(config.topic), type.bytes_max),
        depth(std::max(1U, config.qos->depth)) {}
  Type& type;
  std::tuple<uint32_t, std::string, uint64_t> place;  // endpoints match if it is the same
  uint64_t depth;
};

struct Slot {
  std::unique_ptr<uint8_t[]> data;
  uint64_t bytes = 0;
  bool shown = false;  // between take and release
};

struct Reader : Endpoint {
  Reader(Node& node, const lagometer_endpoint_config& config)
      : Endpoint(node, config),
        slots(depth + kShown),
        on_data(config.dispatch == LAGOMETER_DISPATCH_LISTENER ? config.on_data : nullptr),
        user(config.user) {
    check_endpoint("in_cpp", config, kSupported);
    for (Slot& slot : slots) slot.data = std::make_unique_for_overwrite<uint8_t[]>(type.bytes_max);
  }
  ~Reader() {
    const std::lock_guard lock(mutex);
    std::erase(readers, this);
  }
  void enable() {
    if (on_data != nullptr) listener = std::jthread([this](const std::stop_token& stop) { listen(stop); });
    const std::lock_guard lock(mutex);
    readers.push_back(this);
  }
  void listen(const std::stop_token& stop) {
    host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c("listener"));
    std::unique_lock lock(mutex);
    for (uint64_t told = 0; news.wait(lock, stop, [&] { return come > told; }); lock.lock()) {
      told = come;
      lock.unlock();
      on_data(user);
    }
    host->thread_end(host->self);
  }
  /// Called with the lock held. If the next slot is still shown, the message is lost.
  void receive(const std::vector<uint8_t>& data, uint64_t bytes) {
    Slot& slot = slots[come % slots.size()];
    if (slot.shown) return;
    std::copy_n(data.begin(), bytes, slot.data.get());
    slot.bytes = bytes;
    if (++come - taken > depth) ++taken;
    news.notify_one();
  }
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& count) {
    const std::lock_guard lock(mutex);
    for (count = 0; count < max && taken < come; ++count, ++taken) {
      Slot& slot = slots[taken % slots.size()];
      slot.shown = true;
      lagometer_sample& sample = sample_at(samples, stride, count);
      sample.flags = 0;
      sample.region_count = 1;
      sample.regions[0] = {slot.data.get(), slot.bytes};
      sample.adapter_data = &slot;
    }
    return LAGOMETER_OK;
  }
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) {
    const std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < count; ++i) static_cast<Slot*>(sample_at(samples, stride, i).adapter_data)->shown = false;
  }
  std::vector<Slot> slots;  // used in turn
  lagometer_data_function on_data;
  void* user;
  uint64_t taken = 0, come = 0;  // messages `taken` to `come` - 1 are waiting, at most `depth` of them
  std::condition_variable_any news;
  std::jthread listener;  // the last member: it ends before the members it uses
};

struct Writer : Endpoint {
  Writer(Node& node, const lagometer_endpoint_config& config) : Endpoint(node, config), data(type.bytes_max) {
    check_writer("in_cpp", config, kSupported);
  }
  lagometer_status borrow(uint64_t bytes, lagometer_message& message) {
    type.check(bytes);
    message.origin = LAGOMETER_ORIGIN_COPIED;
    message.region_count = 1;
    message.regions[0] = {data.data(), bytes};
    return LAGOMETER_OK;
  }
  lagometer_status commit(lagometer_message& message) {
    const std::lock_guard lock(mutex);
    for (Reader* reader : readers) {
      if (reader->place == place) reader->receive(data, message.regions[0].size);
    }
    return LAGOMETER_OK;
  }
  std::vector<uint8_t> data;
};

// Required: all classes and methods that lagometer/binding.hpp lists; Plain, PlainNode, PlainType and PlainTraits
// provide the usual ones. Without the dispatch "waitset", use this class.
struct NoWaitset {
  explicit NoWaitset(Context&) { throw Error(LAGOMETER_UNSUPPORTED, "in_cpp has no waitset"); }
  void attach(Reader&) {}
  lagometer_status wait(int64_t) { return LAGOMETER_UNSUPPORTED; }
  void trigger() {}
};

struct Traits : PlainTraits, Parts<Context, Node, Type, Writer, Reader, NoWaitset> {
  static constexpr std::string_view name = "in_cpp";
  static std::string probe(std::string_view) { return R"({"version":"1","abilities":{},"limits":{}})"; }
  static std::string describe(uint32_t, const void*) { return R"({"transport":{"within_process":["process"]}})"; }
};
}  // namespace

LAGOMETER_EXPORT_ADAPTER(Traits)
