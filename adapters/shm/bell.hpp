// SPDX-License-Identifier: Apache-2.0
// How one thread sleeps until another process has something for it: a futex in shared memory, and no system call while
// nobody sleeps.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <limits>

namespace lagometer::shm {

inline constexpr int64_t never_ns = std::numeric_limits<int64_t>::max();

/// One sleeper, any number of ringers, in any process. Zeroed memory is a valid bell.
///
/// No wake-up is lost if the ringer publishes what the sleeper's condition reads by a sequentially consistent store
/// before ring(), and the condition reads it by a sequentially consistent load. In the single order of all these
/// operations there are two cases. Either `sleeping_ = 1` comes before the ringer's load of it: then the ringer raises
/// the epoch and wakes the sleeper. Or it comes after: then so does the condition's load, which sees what was
/// published. The epoch covers the gap between the condition and the system call: the kernel sleeps only if the epoch
/// has not changed since it was read. A ringer killed between its two steps leaves `sleeping_` set, so the next ringer
/// wakes the sleeper.
class Bell {
 public:
  void ring() noexcept {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    // Not the private futex operations: the sleeper may be in another process.
    syscall(SYS_futex, &epoch_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps unless `ready()`; returns when rung, at `until_ns` of CLOCK_MONOTONIC, or spuriously.
  template <typename Condition>
  void sleep(Condition&& ready, int64_t until_ns) noexcept {
    sleeping_.store(1, std::memory_order_seq_cst);
    const uint32_t epoch = epoch_.load(std::memory_order_seq_cst);
    if (!ready()) {
      constexpr int64_t second_ns = 1'000'000'000;
      const int64_t until = until_ns < 0 ? 0 : until_ns;
      const timespec deadline{.tv_sec = until / second_ns, .tv_nsec = until % second_ns};
      syscall(SYS_futex, &epoch_, FUTEX_WAIT_BITSET, epoch, until_ns == never_ns ? nullptr : &deadline, nullptr,
              FUTEX_BITSET_MATCH_ANY);
    }
    sleeping_.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<uint32_t> epoch_{0};
  std::atomic<uint32_t> sleeping_{0};
  static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
};

}  // namespace lagometer::shm
