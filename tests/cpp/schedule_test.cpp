// SPDX-License-Identifier: Apache-2.0
// Schedules are the same for a seed and follow the distributions that they bear the names of.
#include "schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace lagometer::engine {
namespace {

constexpr int64_t kPeriod_ns = 1'000'000;
constexpr size_t kMany = 20'000;
// Kolmogorov's critical value for a significance of 0.001; the sequences are seeded, so a test that passes always does.
constexpr double kCritical = 1.95;

std::vector<int64_t> times_of(const SchedulePlan& plan, size_t count, int64_t period_ns = kPeriod_ns) {
  Schedule schedule(plan, period_ns);
  std::vector<int64_t> times_ns(count);
  std::generate(times_ns.begin(), times_ns.end(), [&] { return schedule.next_ns(); });
  return times_ns;
}

std::vector<double> intervals_of(const std::vector<int64_t>& times_ns) {
  std::vector<double> intervals(times_ns.size());
  std::adjacent_difference(times_ns.begin(), times_ns.end(), intervals.begin());
  return intervals;
}

/// The greatest distance of the sample's distribution from a continuous one, times the root of its size.
double kolmogorov(std::vector<double> sample, const std::function<double(double)>& distribution) {
  std::sort(sample.begin(), sample.end());
  const auto count = static_cast<double>(sample.size());
  double greatest = 0.0;
  for (size_t at = 0; at < sample.size(); ++at) {
    const double share = distribution(sample[at]);
    greatest =
        std::max({greatest, share - static_cast<double>(at) / count, static_cast<double>(at + 1) / count - share});
  }
  return greatest * std::sqrt(count);
}

TEST(Schedule, PeriodicKeepsExactMultiples) {
  EXPECT_EQ(times_of({}, 4, 333), (std::vector<int64_t>{0, 333, 666, 999}));
}

TEST(Schedule, PoissonHasExponentialIntervals) {
  const auto intervals = intervals_of(times_of({.kind = ScheduleKind::poisson, .seed = 7}, kMany));
  const auto exponential = [](double ns) { return 1.0 - std::exp(-ns / kPeriod_ns); };
  EXPECT_LT(kolmogorov(intervals, exponential), kCritical);
  // The test can tell: with a mean that is five per cent off it fails.
  EXPECT_GT(kolmogorov(intervals, [&](double ns) { return exponential(ns * 1.05); }), kCritical);
}

TEST(Schedule, PoissonIntervalsDoNotDependOnTheLast) {
  const auto intervals = intervals_of(times_of({.kind = ScheduleKind::poisson, .seed = 8}, kMany));
  double products = 0.0;
  double squares = 0.0;
  for (size_t at = 1; at < intervals.size(); ++at) {
    products += (intervals[at] - kPeriod_ns) * (intervals[at - 1] - kPeriod_ns);
    squares += (intervals[at] - kPeriod_ns) * (intervals[at] - kPeriod_ns);
  }
  EXPECT_LT(std::abs(products / squares), 3.3 / std::sqrt(static_cast<double>(kMany)));
}

TEST(Schedule, PoissonIsTheSameForASeedAlone) {
  const SchedulePlan seven{.kind = ScheduleKind::poisson, .seed = 7};
  EXPECT_EQ(times_of(seven, 100), times_of(seven, 100));
  EXPECT_NE(times_of(seven, 100), times_of({.kind = ScheduleKind::poisson, .seed = 8}, 100));
}

TEST(Schedule, BurstSendsSeveralAtOnceAndKeepsTheRate) {
  const auto times_ns = times_of({.kind = ScheduleKind::burst, .messages = 3}, 7, 1000);
  EXPECT_EQ(times_ns, (std::vector<int64_t>{0, 0, 0, 3000, 3000, 3000, 6000}));
}

TEST(Schedule, RampGoesEvenlyFromOneRateToTheOther) {
  // 1 kHz for 100 ms, then within 1 s to 3 kHz: 100, and 2,000 in the ramp, half of which come after 1 / √2 … of it.
  const SchedulePlan plan{.kind = ScheduleKind::ramp,
                          .end_period_ns = kPeriod_ns / 3,
                          .begin_ns = 100 * kPeriod_ns,
                          .duration_ns = 1000 * kPeriod_ns};
  const auto times_ns = times_of(plan, 3000);
  EXPECT_TRUE(std::is_sorted(times_ns.begin(), times_ns.end()));
  EXPECT_EQ(times_ns[99], 99 * kPeriod_ns);
  EXPECT_NEAR(static_cast<double>(times_ns[100]), 100e6, 1.0);
  EXPECT_NEAR(static_cast<double>(times_ns[2100]), 1100e6, 1000.0);
  EXPECT_NEAR(static_cast<double>(times_ns[2103] - times_ns[2100]), 1e6, 1000.0);
  // Within the ramp, at half time: 1 kHz · 0.5 s + 2 kHz/s · 0.5² s² / 2 = 750 messages.
  EXPECT_NEAR(static_cast<double>(times_ns[850]), 600e6, 1000.0);
}

TEST(Schedule, RampMayFall) {
  const SchedulePlan plan{.kind = ScheduleKind::ramp, .end_period_ns = 4 * kPeriod_ns, .duration_ns = 800 * kPeriod_ns};
  const auto times_ns = times_of(plan, 600);
  EXPECT_NEAR(static_cast<double>(times_ns[500]), 800e6, 1000.0);
  EXPECT_NEAR(static_cast<double>(times_ns[501] - times_ns[500]), 4e6, 1000.0);
}

TEST(Schedule, RecordedIntervalsComeOverAndOver) {
  const auto intervals = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{5, 0, 100});
  const SchedulePlan plan{.kind = ScheduleKind::recorded, .intervals_ns = intervals};
  EXPECT_EQ(times_of(plan, 8), (std::vector<int64_t>{0, 5, 5, 105, 110, 110, 210, 215}));
  EXPECT_EQ(Schedule(plan, 0).spacing_ns(), 35);
}

TEST(Schedule, CountsWhatIsDueInAWindow) {
  const SchedulePlan burst{.kind = ScheduleKind::burst, .messages = 3};
  EXPECT_EQ(messages_due({}, 1000, 0, 0, 1000), 1U);
  EXPECT_EQ(messages_due({}, 1000, 0, 1, 1001), 1U);
  EXPECT_EQ(messages_due({}, 1000, 500, 0, 3000), 3U);
  EXPECT_EQ(messages_due(burst, 1000, 0, 3000, 6001), 6U);
  const SchedulePlan poisson{.kind = ScheduleKind::poisson, .seed = 3};
  const auto times_ns = times_of(poisson, kMany);
  const auto until = [&](int64_t end_ns) { return std::lower_bound(times_ns.begin(), times_ns.end(), end_ns); };
  EXPECT_EQ(messages_due(poisson, kPeriod_ns, 0, 300 * kPeriod_ns, 2300 * kPeriod_ns),
            static_cast<uint64_t>(until(2300 * kPeriod_ns) - until(300 * kPeriod_ns)));
}

TEST(Random, NormalIsNormal) {
  Random random(11);
  std::vector<double> sample(kMany);
  std::generate(sample.begin(), sample.end(), [&] { return random.normal(); });
  EXPECT_LT(kolmogorov(sample, [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2.0; }), kCritical);
}

}  // namespace
}  // namespace lagometer::engine
