// SPDX-License-Identifier: Apache-2.0
#include "schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lagometer::engine {

namespace {

int64_t spacing_of(const SchedulePlan& plan, int64_t period_ns) {
  switch (plan.kind) {
    case ScheduleKind::periodic:
    case ScheduleKind::poisson:
      return period_ns;
    case ScheduleKind::burst:
      return period_ns * static_cast<int64_t>(plan.messages);
    case ScheduleKind::ramp:
      return std::max(period_ns, plan.end_period_ns);
    case ScheduleKind::recorded: {
      const std::vector<int64_t>& intervals_ns = *plan.intervals_ns;
      const int64_t sum_ns = std::accumulate(intervals_ns.begin(), intervals_ns.end(), int64_t{0});
      return std::max<int64_t>(1, sum_ns / static_cast<int64_t>(intervals_ns.size()));
    }
  }
  return period_ns;
}

}  // namespace

Schedule::Schedule(const SchedulePlan& plan, int64_t period_ns)
    : plan_(plan), period_ns_(period_ns), spacing_ns_(spacing_of(plan, period_ns)), random_(plan.seed) {}

int64_t Schedule::next_ns() noexcept {
  const uint64_t index = index_++;
  switch (plan_.kind) {
    case ScheduleKind::periodic:
      break;
    case ScheduleKind::poisson:
      sum_ns_ += std::llround(random_.exponential() * static_cast<double>(period_ns_));
      return sum_ns_;
    case ScheduleKind::burst:
      return static_cast<int64_t>(index / plan_.messages) * spacing_ns_;
    case ScheduleKind::ramp:
      return std::llround(ramp_ns(index));
    case ScheduleKind::recorded:
      if (index > 0) sum_ns_ += (*plan_.intervals_ns)[(index - 1) % plan_.intervals_ns->size()];
      return sum_ns_;
  }
  return static_cast<int64_t>(index) * period_ns_;
}

// The rate grows (or falls) linearly from a to b within the duration D. Message k is due when the integral of the rate
// reaches k: a t + (b - a) t² / 2 D = k, solved in the form that does not cancel. Each time is computed from k alone,
// so that errors don't add up.
double Schedule::ramp_ns(uint64_t index) const noexcept {
  const double begin_rate = 1.0 / static_cast<double>(period_ns_);
  const double end_rate = 1.0 / static_cast<double>(plan_.end_period_ns);
  const auto begin_ns = static_cast<double>(plan_.begin_ns);
  const auto duration_ns = static_cast<double>(plan_.duration_ns);
  const double within = static_cast<double>(index) - begin_ns * begin_rate;
  if (within <= 0.0) return static_cast<double>(index) / begin_rate;
  const double whole_ramp = (begin_rate + end_rate) / 2.0 * duration_ns;
  if (within >= whole_ramp) return begin_ns + duration_ns + (within - whole_ramp) / end_rate;
  const double root = std::sqrt(begin_rate * begin_rate + 2.0 * (end_rate - begin_rate) * within / duration_ns);
  return begin_ns + 2.0 * within / (begin_rate + root);
}

uint64_t messages_due(const SchedulePlan& plan, int64_t period_ns, int64_t offset_ns, int64_t begin_ns,
                      int64_t end_ns) {
  if (plan.kind == ScheduleKind::periodic) {
    const auto before = [&](int64_t time_ns) {
      return time_ns <= offset_ns ? int64_t{0} : (time_ns - offset_ns + period_ns - 1) / period_ns;
    };
    return static_cast<uint64_t>(before(end_ns) - before(begin_ns));
  }
  Schedule schedule(plan, period_ns);
  uint64_t count = 0;
  for (int64_t due_ns = offset_ns + schedule.next_ns(); due_ns < end_ns; due_ns = offset_ns + schedule.next_ns()) {
    if (due_ns >= begin_ns) ++count;
  }
  return count;
}

}  // namespace lagometer::engine
