// SPDX-License-Identifier: Apache-2.0
// When a timer sends: an open-loop schedule, known before the first message and independent of what happens to it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "random.hpp"

namespace lagometer::engine {

enum class ScheduleKind { periodic, poisson, burst, ramp, recorded };

/// What a sender does with a message that is overdue by at least one spacing of its schedule.
enum class LatePolicy {
  burst,  ///< sends all due messages at once
  skip,   ///< drops it
  shift,  ///< sends it, and delays all that follow by as much
};

struct SchedulePlan {
  ScheduleKind kind = ScheduleKind::periodic;
  LatePolicy late = LatePolicy::burst;
  uint64_t seed = 0;          ///< poisson
  uint64_t messages = 1;      ///< burst: how many at once
  int64_t end_period_ns = 0;  ///< ramp: the period at its end
  int64_t begin_ns = 0;       ///< ramp: when it begins, relative to the start
  int64_t duration_ns = 0;    ///< ramp
  /// recorded: intervals between messages, repeated
  std::shared_ptr<const std::vector<int64_t>> intervals_ns = nullptr;
};

/// The intended times of a timer's messages, one after another. Neither allocates nor locks after construction.
class Schedule {
 public:
  /// `period_ns`: mean interval between messages (ramp: at its begin; recorded: not used).
  Schedule(const SchedulePlan& plan, int64_t period_ns);

  /// The intended time of the next message, relative to the start. Never decreases.
  int64_t next_ns() noexcept;
  /// The mean interval between two wake-ups: a message that is overdue by this much is late.
  [[nodiscard]] int64_t spacing_ns() const noexcept { return spacing_ns_; }

 private:
  [[nodiscard]] double ramp_ns(uint64_t index) const noexcept;

  SchedulePlan plan_;
  int64_t period_ns_;
  int64_t spacing_ns_;
  Random random_;
  uint64_t index_ = 0;
  int64_t sum_ns_ = 0;  // poisson, recorded: sum of the intervals so far
};

/// How many messages a schedule has from `begin_ns` until before `end_ns`, both relative to the start.
uint64_t messages_due(const SchedulePlan& plan, int64_t period_ns, int64_t offset_ns, int64_t begin_ns, int64_t end_ns);

}  // namespace lagometer::engine
