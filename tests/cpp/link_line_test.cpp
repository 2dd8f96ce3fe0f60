// SPDX-License-Identifier: Apache-2.0
// What frames of a link wait for: a rate that changes while they wait, and a recorded trace of its capacity.
#include "link_line.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace lagometer::link {
namespace {

constexpr int64_t kMs_ns = 1'000'000;

bool push(Line& line, int64_t now_ns, size_t size) {
  const std::vector<unsigned char> frame(size);
  return line.push(now_ns, frame.data(), frame.size());
}

/// When each frame leaves, until none waits.
std::vector<int64_t> departures_us(Line& line) {
  std::vector<int64_t> found;
  while (line.departure_ns() != kNever_ns) {
    found.push_back(line.departure_ns() / 1000);
    line.pop();
  }
  return found;
}

/// A line of 8 Mbit/s, which saves up 1000 bytes.
Line line_of(int64_t queue_bytes = 100'000, std::vector<int64_t> trace_ms = {}) {
  return Line({.rate_bps = 8'000'000,
               .overhead_bytes = 24,
               .saved_bytes = 0,
               .queue_bytes = queue_bytes,
               .trace_ms = std::move(trace_ms)});
}

TEST(LinkLine, FramesLeaveAtTheRateOnceWhatWasSavedIsUsed) {
  Line line = line_of();
  for (int frame = 0; frame < 3; ++frame) EXPECT_TRUE(push(line, kMs_ns / 2, 976));
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{500, 1500, 2500}));
  EXPECT_TRUE(push(line, 3 * kMs_ns, 976));  // half of it was saved since
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{3500}));
  EXPECT_TRUE(push(line, 60'000 * kMs_ns, 976));  // no more is saved in a minute than in a millisecond
  EXPECT_TRUE(push(line, 60'000 * kMs_ns, 976));
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{60'000'000, 60'001'000}));
}

TEST(LinkLine, WhatHasNoRoomIsRefused) {
  Line line = line_of(2'000);
  EXPECT_TRUE(push(line, 0, 1000));
  EXPECT_TRUE(push(line, 0, 1000));
  EXPECT_FALSE(push(line, 0, 1));
  line.pop();
  EXPECT_TRUE(push(line, kMs_ns, 1000));
}

TEST(LinkLine, AnotherRateHoldsForWhatWaitsAsWell) {
  Line line = line_of();
  for (int frame = 0; frame < 3; ++frame) push(line, 0, 976);
  line.pop();
  line.set_rate(kMs_ns / 2, 4'000'000);
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{1500, 3500}));
}

TEST(LinkLine, ATraceLetsAPacketLeaveAtEachOfItsTimesAndBeginsAgain) {
  Line line = line_of(100'000, {1, 1, 4, 10});
  line.begin_trace(100 * kMs_ns);
  for (int frame = 0; frame < 6; ++frame) push(line, 100 * kMs_ns, 1514);
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{101'000, 101'000, 104'000, 110'000, 111'000, 111'000}));
}

TEST(LinkLine, AnOpportunityThatNobodyWaitedForIsLostAndSmallPacketsShareOne) {
  Line line = line_of(100'000, {2, 4, 6, 20});
  line.begin_trace(0);
  push(line, 3 * kMs_ns, 700);
  push(line, 3 * kMs_ns, 700);
  push(line, 3 * kMs_ns, 700);  // 700 - 14 + 4 bytes, three times, are more than 1504
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{4000, 4000, 6000}));
  push(line, 7 * kMs_ns, 100);
  EXPECT_EQ(departures_us(line), (std::vector<int64_t>{20'000}));
}

TEST(LinkLine, UntilItsTraceBeginsTheRateHolds) {
  Line line = line_of(100'000, {5});
  push(line, 0, 976);
  line.pop();
  push(line, 0, 976);
  EXPECT_EQ(line.departure_ns(), kMs_ns);
  line.begin_trace(kMs_ns / 2);
  EXPECT_EQ(line.departure_ns(), 5 * kMs_ns + kMs_ns / 2);
  line.set_rate(kMs_ns, 1'000'000);  // a trace has no rate
  EXPECT_EQ(line.departure_ns(), 5 * kMs_ns + kMs_ns / 2);
}

}  // namespace
}  // namespace lagometer::link
