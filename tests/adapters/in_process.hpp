// SPDX-License-Identifier: Apache-2.0
// A middleware within one process, with a delivery thread of its own, that misbehaves where a test wants it to.
//
// A Behaviour type says how:
//   static void created(), publishing(), signalling(), taking();   // called at these places
//   static bool drops(uint64_t number);                            // the number-th data message of a writer
//   static void lending(std::span<uint8_t> payload);               // what a writer is about to be given
//   static void sending(std::span<const uint8_t> payload);         // a data message as it was handed over
// All three dispatch modes are there. `signalled` is what the delivery thread saw; a polled reader does not tell it.
#pragma once

#include <sched.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "binding.hpp"

namespace lagometer::test {

/// Does nothing out of the ordinary; a test's behaviour derives from it and hides what it needs.
struct Ordinary {
  static void created() {}
  static void publishing() {}
  static void signalling() {}
  static void taking() {}
  static bool drops(uint64_t) { return false; }
  static void lending(std::span<uint8_t>) {}
  static void sending(std::span<const uint8_t>) {}
  /// In the place of messages that were overwritten, of which there are none: how often a reader was asked in vain.
  static constexpr bool kTellsEmptyTakes = false;
};

constexpr size_t kKindAt = 3;  // of the envelope: 0 is data (docs/PROTOCOL.md)

template <typename Behaviour>
struct InProcess {
  struct Message {
    std::string topic;
    std::vector<uint8_t> payload;
    int64_t signalled_ns = 0;
    uint32_t signalled_cpu = 0;
  };

  struct Reader;

  /// What all contexts of the process share, and the thread that carries messages from writers to readers.
  struct Bus {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Message> under_way;
    std::vector<Reader*> readers;
    bool delivering = false;
    bool ended = false;

    void deliver() {
      host->thread_begin(host->self, 0, to_c("delivery"));
      std::unique_lock lock(mutex);
      for (;;) {
        changed.wait(lock, [this] { return ended || !under_way.empty(); });
        if (ended) break;
        Message message = std::move(under_way.front());
        under_way.pop_front();
        const bool data = message.payload[kKindAt] == 0;
        delivering = true;
        lock.unlock();
        if (data) Behaviour::signalling();
        message.signalled_ns = now_ns();
        message.signalled_cpu = static_cast<uint32_t>(sched_getcpu());
        lock.lock();
        for (Reader* reader : readers) {
          if (reader->topic != message.topic) continue;
          reader->queue.push_back(message);
          if (reader->dispatch == LAGOMETER_DISPATCH_LISTENER) {
            lock.unlock();
            reader->on_data(reader->user);
            lock.lock();
          }
        }
        delivering = false;
        changed.notify_all();
      }
      lock.unlock();
      host->thread_end(host->self);
    }
  };
  static Bus& bus() {
    static Bus instance;
    return instance;
  }

  struct Context : Plain {
    explicit Context(const lagometer_context_config&) { Behaviour::created(); }
    ~Context() {
      if (!thread.joinable()) return;
      {
        const std::lock_guard lock(bus().mutex);
        bus().ended = true;
      }
      bus().changed.notify_all();
      thread.join();
    }
    void enable() {
      bus().ended = false;
      thread = std::thread([] { bus().deliver(); });
    }
    std::thread thread;
  };
  using Node = PlainNode<Context>;
  using Type = PlainType<Context>;

  struct Reader : Plain {
    Reader(Node&, const lagometer_endpoint_config& config)
        : topic(view(config.topic)), dispatch(config.dispatch), on_data(config.on_data), user(config.user) {}
    ~Reader() {
      std::unique_lock lock(bus().mutex);
      bus().changed.wait(lock, [] { return !bus().delivering; });
      std::erase(bus().readers, this);
    }
    void enable() {
      const std::lock_guard lock(bus().mutex);
      bus().readers.push_back(this);
    }
    lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t, uint32_t& taken) {
      taken = 0;
      {
        const std::lock_guard lock(bus().mutex);
        if (queue.empty()) ++empty_takes;
        if (queue.empty()) return LAGOMETER_OK;
        held = std::move(queue.front());
        queue.pop_front();
      }
      if (held.payload[kKindAt] == 0) Behaviour::taking();
      lagometer_sample& sample = sample_at(samples, stride, 0);
      sample.flags = 0;
      sample.region_count = 1;
      sample.regions[0] = {held.payload.data(), held.payload.size()};
      sample.middleware_sequence = 0;
      const bool observed = dispatch != LAGOMETER_DISPATCH_POLL;
      sample.signalled_ns = observed ? held.signalled_ns : 0;
      sample.signalled_cpu = observed ? held.signalled_cpu : 0;
      taken = 1;
      return LAGOMETER_OK;
    }
    void release(lagometer_sample*, uint32_t, uint32_t) {}
    void counters(lagometer_counters& out) const {
      out.present = Behaviour::kTellsEmptyTakes ? LAGOMETER_COUNTER_OVERWRITTEN : 0;
      out.overwritten = empty_takes;
    }

    std::string topic;
    uint32_t dispatch;
    lagometer_data_function on_data;
    void* user;
    std::deque<Message> queue;
    Message held;
    uint64_t empty_takes = 0;
  };

  struct Writer : Plain {
    Writer(Node&, const lagometer_endpoint_config& config)
        : topic(view(config.topic)), buffer(reinterpret_cast<Type*>(config.type)->bytes_max) {}
    lagometer_status borrow(uint64_t bytes, lagometer_message& message) {
      message.origin = LAGOMETER_ORIGIN_COPIED;
      message.region_count = 1;
      message.regions[0] = {buffer.data(), bytes};
      Behaviour::lending({buffer.data(), bytes});
      return LAGOMETER_OK;
    }
    lagometer_status commit(lagometer_message& message) {
      const bool data = buffer[kKindAt] == 0;
      if (data) Behaviour::publishing();
      if (data) Behaviour::sending({buffer.data(), message.regions[0].size});
      if (data && Behaviour::drops(count++)) return LAGOMETER_OK;
      const std::lock_guard lock(bus().mutex);
      bus().under_way.push_back({topic, {buffer.data(), buffer.data() + message.regions[0].size}, 0, 0});
      bus().changed.notify_all();
      return LAGOMETER_OK;
    }
    std::string topic;
    std::vector<uint8_t> buffer;
    uint64_t count = 0;
  };

  struct Waitset {
    explicit Waitset(Context&) {}
    void attach(Reader& reader) { attached.push_back(&reader); }
    lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
      const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(std::min(until_ns, int64_t{1} << 62))};
      std::unique_lock lock(bus().mutex);
      const auto has_data = [](const Reader* reader) { return !reader->queue.empty(); };
      const auto ready = [&] { return triggered || std::ranges::any_of(attached, has_data); };
      const bool woken = bus().changed.wait_until(lock, until, ready);
      triggered = false;
      count = name_ready(attached, places, has_data);
      return woken ? LAGOMETER_OK : LAGOMETER_TIMEOUT;
    }
    void trigger() {
      const std::lock_guard lock(bus().mutex);
      triggered = true;
      bus().changed.notify_all();
    }
    std::vector<Reader*> attached;
    bool triggered = false;
  };
};

/// The Traits of an adapter with this behaviour.
template <typename Behaviour>
struct InProcessTraits : PlainTraits {
  using Context = typename InProcess<Behaviour>::Context;
  using Node = typename InProcess<Behaviour>::Node;
  using Type = typename InProcess<Behaviour>::Type;
  using Writer = typename InProcess<Behaviour>::Writer;
  using Reader = typename InProcess<Behaviour>::Reader;
  using Waitset = typename InProcess<Behaviour>::Waitset;
  static constexpr std::string_view name = Behaviour::name;
  static std::string probe(std::string_view) { return R"({"version":"test","abilities":{},"limits":{}})"; }
};

}  // namespace lagometer::test
