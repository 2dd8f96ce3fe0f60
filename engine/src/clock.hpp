// SPDX-License-Identifier: Apache-2.0
// The one clock: CLOCK_MONOTONIC through the vDSO, and the CPU that a stamp was taken on.
#pragma once

#include <sched.h>
#include <time.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <cstddef>
#include <cstdint>

namespace lagometer::engine {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

/// Nanoseconds of CLOCK_MONOTONIC, the same for all processes of a host.
inline int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

/// The CPU this thread runs on. The kernel keeps it in the thread's restartable-sequences area, where the C library has
/// one (glibc from 2.35 on): a load, where sched_getcpu() is a call through three cold cache lines.
inline uint16_t current_cpu() noexcept {
#ifdef RSEQ_SIG
  const auto* area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
  const auto cpu = *reinterpret_cast<const volatile int32_t*>(area + offsetof(struct rseq, cpu_id));
  if (cpu >= 0) [[likely]]
    return static_cast<uint16_t>(cpu);
#endif
  return static_cast<uint16_t>(sched_getcpu());
}

inline timespec to_timespec(int64_t time_ns) noexcept {
  return {.tv_sec = static_cast<time_t>(time_ns / kNanosecondsPerSecond),
          .tv_nsec = static_cast<long>(time_ns % kNanosecondsPerSecond)};
}

}  // namespace lagometer::engine
