// SPDX-License-Identifier: Apache-2.0
// The clock: CLOCK_MONOTONIC through the vDSO, and the CPU on which a stamp was taken.
#pragma once

#include <sched.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <cstddef>
#include <cstdint>

namespace lagometer::engine {

constexpr uint16_t kCpuUnknown = 0xFFFF;  // also in the records (docs/PROTOCOL.md)
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

/// Nanoseconds of CLOCK_MONOTONIC, the same for all processes of a host. Out of line on purpose, and in one cache line:
/// after a pause, a message's cost depends on how many lines of code it needs, and the clock is read several times.
[[gnu::noinline, gnu::aligned(64)]] inline int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

/// How to read the number of this thread's CPU.
enum class CpuSource : uint8_t {
  kernel,       // the thread's restartable-sequences area, or getcpu
  instruction,  // RDPID: a register, so no memory is touched
};

#if defined(__x86_64__)
/// The register as filled by Linux: the low 12 bits are the CPU, the rest is its NUMA node.
inline uint16_t cpu_by_instruction() noexcept {
  uint64_t value = 0;
  asm volatile("rdpid %0" : "=r"(value));
  return static_cast<uint16_t>(value & 0xFFF);
}
#endif

/// The thread's restartable-sequences area if the C library has one (glibc 2.35 and later), otherwise the system call.
/// Out of line: when the instruction is used, this code would only be in the way.
[[gnu::noinline, gnu::cold]] inline uint16_t cpu_by_kernel() noexcept {
#ifdef RSEQ_SIG
  const auto* area = static_cast<const char*>(__builtin_thread_pointer()) + __rseq_offset;
  const auto cpu = *reinterpret_cast<const volatile int32_t*>(area + offsetof(struct rseq, cpu_id));
  if (cpu >= 0) [[likely]]
    return static_cast<uint16_t>(cpu);
#endif
  return static_cast<uint16_t>(sched_getcpu());
}

/// The CPU on which this thread runs. After a pause, the C library's area costs two cold pages and sched_getcpu()
/// three; the instruction always costs 2 ns.
inline uint16_t current_cpu(CpuSource source) noexcept {
#if defined(__x86_64__)
  if (source == CpuSource::instruction) [[likely]]
    return cpu_by_instruction();
#else
  static_cast<void>(source);
#endif
  return cpu_by_kernel();
}

/// When something happened, and on which CPU.
struct Stamp {
  int64_t time_ns = 0;
  uint16_t cpu = kCpuUnknown;
};

/// The time and, right after it, the CPU. Inline, unlike now_ns(): reading the CPU is one instruction, and a function
/// would be one more cache line.
[[gnu::always_inline]] inline Stamp stamp_now(CpuSource source) noexcept {
  const int64_t time_ns = now_ns();
  return {.time_ns = time_ns, .cpu = current_cpu(source)};
}

/// The best source on this machine. Asks the kernel, so don't call it while measuring.
inline CpuSource best_cpu_source() noexcept {
#if defined(__x86_64__)
  constexpr uint32_t kRdpid = 1U << 22;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kRdpid) == 0) return CpuSource::kernel;
  // A kernel other than Linux itself may use the register for something else. Retried because the thread may migrate in
  // between.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (cpu_by_instruction() == sched_getcpu()) return CpuSource::instruction;
  }
#endif
  return CpuSource::kernel;
}

inline timespec to_timespec(int64_t time_ns) noexcept {
  return {.tv_sec = static_cast<time_t>(time_ns / kNanosecondsPerSecond),
          .tv_nsec = static_cast<long>(time_ns % kNanosecondsPerSecond)};
}

}  // namespace lagometer::engine
