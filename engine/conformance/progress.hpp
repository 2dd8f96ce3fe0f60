// SPDX-License-Identifier: Apache-2.0
// What this process is doing, in memory that the starting program can read at any time, even if the process hangs or is
// dead: the progress of a long order, and the last call into the adapter of each thread
// (lagometer/conformance/progress.py).
//
// The memory is what LAGOMETER_RECORDS_FD names: a header, then one slot for each thread that is in a call or was last
// in one. Nobody locks: a reader that sees a half-written slot gets a truncated name.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lagometer::conformance {

constexpr size_t kProgressSlots = 63;

struct ProgressHeader {
  std::atomic<uint64_t> steps{0};  // of all orders together: it grows while there is progress
  std::atomic<uint64_t> done{0};   // of the current order, in the order's own unit
  std::atomic<uint64_t> total{0};  // 0: the order has no unit
  std::array<uint64_t, 5> unused{};
};

struct ProgressSlot {
  std::atomic<int64_t> begin_ns{0};  // CLOCK_MONOTONIC; 0: no call was made yet
  std::atomic<uint32_t> under_way{0};
  uint32_t unused = 0;
  std::array<char, 48> name{};
};
static_assert(sizeof(ProgressHeader) == 64 && sizeof(ProgressSlot) == 64);

/// Maps the memory; without it, or if there is no memory, nothing is reported. Call it once, before any adapter is
/// loaded.
void tell_progress() noexcept;

/// Notes progress of the current order.
void step() noexcept;
void step(uint64_t done, uint64_t total) noexcept;
/// Notes that another order begins, which has no unit yet.
void begin_order() noexcept;

/// Marks a call into the adapter on this thread for its lifetime. `name` must outlive it; null: not reported.
class CallMark {
 public:
  explicit CallMark(const char* name) noexcept;
  ~CallMark();
  CallMark(const CallMark&) = delete;
  CallMark& operator=(const CallMark&) = delete;

 private:
  const char* name_;
  const char* around_ = nullptr;  // the call around this one, which a callback makes
};

}  // namespace lagometer::conformance
