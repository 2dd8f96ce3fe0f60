// SPDX-License-Identifier: Apache-2.0
// The one clock: CLOCK_MONOTONIC through the vDSO, and the CPU that a stamp was taken on.
#pragma once

#include <sched.h>
#include <time.h>

#include <cstdint>

namespace lagometer::engine {

constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

/// Nanoseconds of CLOCK_MONOTONIC, the same for all processes of a host.
inline int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

/// The CPU this thread runs on; with a C library that registers restartable sequences, one load from thread-local memory.
inline uint16_t current_cpu() noexcept { return static_cast<uint16_t>(sched_getcpu()); }

inline timespec to_timespec(int64_t time_ns) noexcept {
  return {.tv_sec = static_cast<time_t>(time_ns / kNanosecondsPerSecond),
          .tv_nsec = static_cast<long>(time_ns % kNanosecondsPerSecond)};
}

}  // namespace lagometer::engine
