// SPDX-License-Identifier: Apache-2.0
// What all threads of a worker must know about the phases, and a sleep that can be ended early.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <limits>

#include "clock.hpp"

namespace lagometer::engine {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();

/// Serialises the callbacks of one node. It yields, because a spinning FIFO thread would keep the holder off its CPU
/// forever.
class SpinLock {
 public:
  void lock() noexcept {
    const void* nobody = nullptr;
    for (int spins = 0; !owner_.compare_exchange_weak(nobody, self(), std::memory_order_acquire); ++spins) {
      nobody = nullptr;
      if (spins > 100) sched_yield();
    }
  }
  void unlock() noexcept { owner_.store(nullptr, std::memory_order_release); }
  /// This thread already holds it: the middleware delivered within the process, from inside the node's own publish.
  [[nodiscard]] bool mine() const noexcept { return owner_.load(std::memory_order_relaxed) == self(); }

 private:
  /// An address that no other thread has.
  static const void* self() noexcept {
    static thread_local constinit char here = 0;
    return &here;
  }

  std::atomic<const void*> owner_{nullptr};
};

/// Written by the main thread, read by all. `start_ns` is 0 until the conductor says go.
struct Stage {
  std::atomic<int64_t> start_ns{0};
  std::atomic<int64_t> source_stop_ns{kNever_ns};
  std::atomic<bool> stopped{false};
  std::atomic<bool> enabled{false};  // every endpoint; listeners are called from the first reader's enable on
  int64_t warmup_ns = 0;             // set before any other thread starts
  mutable SpinLock probing;          // held by the main thread while it sends a probe, before the start

  /// Whether a time is in the measure phase.
  [[nodiscard]] bool measures(int64_t time_ns) const noexcept {
    const int64_t start = start_ns.load(std::memory_order_acquire);
    return start != 0 && time_ns >= start + warmup_ns && time_ns < source_stop_ns.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool running() const noexcept {
    return start_ns.load(std::memory_order_acquire) != 0 && !stopped.load(std::memory_order_relaxed);
  }
};

/// Sleeps until an absolute time on the clock, or until another thread wakes it.
class Parker {
 public:
  void wait_until(int64_t until_ns) noexcept {
    const uint32_t seen = word_.load(std::memory_order_acquire);
    if (seen != taken_) {
      taken_ = seen;
      return;
    }
    const timespec until = to_timespec(until_ns);
    syscall(SYS_futex, &word_, FUTEX_WAIT_BITSET_PRIVATE, seen, until_ns == kNever_ns ? nullptr : &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
    taken_ = word_.load(std::memory_order_acquire);
  }
  void wake() noexcept {
    word_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

 private:
  std::atomic<uint32_t> word_{0};
  static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);
  uint32_t taken_ = 0;  // the sleeper's
};

}  // namespace lagometer::engine
