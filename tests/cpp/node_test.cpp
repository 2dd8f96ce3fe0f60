// SPDX-License-Identifier: Apache-2.0
// What a node does with messages and times, over real adapters within this process.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "clock.hpp"
#include "trial.hpp"

namespace lagometer::engine {
namespace {

using test::json;
using test::kMillisecond_ns;
using test::run_trial;

// 120 ms of sending, every 2 ms.
constexpr size_t kTimerMessages = 60;

class Dispatching : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static std::string library() { return GetParam().first; }
  static std::string dispatch() { return GetParam().second; }
};

TEST_P(Dispatching, PipelinePassesEachMessageOnWithItsCause) {
  json plan = test::pipeline_plan(library(), dispatch());
  if (library() == DROPPING_ADAPTER)
    plan["nodes"][0]["rules"][0]["period_ns"] = 15 * kMillisecond_ns;  // eight: none is dropped
  const auto recorded = run_trial(plan, library() == DROPPING_ADAPTER ? 2 * 8 : 2 * kTimerMessages);
  const auto sent = recorded.sent(0, 0);
  const auto taken = recorded.received(1, 0);
  const auto passed = recorded.sent(1, 1);
  const auto ended = recorded.received(2, 0);
  ASSERT_EQ(sent.size(), library() == DROPPING_ADAPTER ? 8U : kTimerMessages);
  ASSERT_EQ(taken.size(), sent.size());
  ASSERT_EQ(passed.size(), sent.size());
  ASSERT_EQ(ended.size(), sent.size());
  for (size_t at = 0; at < sent.size(); ++at) {
    EXPECT_EQ(sent[at].sequence, at);
    EXPECT_EQ(sent[at].cause_count, 0U);
    EXPECT_GE(sent[at].publish_ns, sent[at].intended_ns);
    EXPECT_GE(sent[at].published_ns, sent[at].publish_ns);
    EXPECT_EQ(taken[at].sequence, at);
    EXPECT_EQ(taken[at].stream, 0U);
    EXPECT_EQ(taken[at].payload_bytes, 128U);
    EXPECT_GE(taken[at].taken_ns, sent[at].publish_ns);
    EXPECT_GE(taken[at].handled_ns, taken[at].taken_ns);
    EXPECT_EQ(passed[at].cause_count, 1U);
    EXPECT_EQ(passed[at].cause_stream, 0U);
    EXPECT_EQ(passed[at].cause_sequence, at);
    EXPECT_EQ(passed[at].intended_ns, 0);
    EXPECT_GE(passed[at].publish_ns, taken[at].taken_ns);
    EXPECT_EQ(ended[at].stream, 1U);
  }
}

TEST_P(Dispatching, StampsOnlyWhatItObserves) {
  const auto recorded = run_trial(test::pipeline_plan(library(), dispatch()),
                                  library() == DROPPING_ADAPTER ? 54 + 49 : 2 * kTimerMessages);
  const auto taken = recorded.received(2, 0);
  ASSERT_FALSE(taken.empty());
  const bool has_thread = library() == DROPPING_ADAPTER;
  for (const ReceivedRecord& record : taken) {
    EXPECT_EQ(record.signalled_ns != 0, has_thread && dispatch() != "poll");
    EXPECT_EQ(record.cpu_signalled != kCpuUnknown, has_thread && dispatch() != "poll");
    EXPECT_EQ(record.woken_ns != 0, dispatch() == "waitset");
    EXPECT_NE(record.cpu_taken, kCpuUnknown);
    if (record.woken_ns != 0) {
      EXPECT_GE(record.taken_ns, record.woken_ns);
    }
  }
}

TEST_P(Dispatching, ClosedLoopGetsAReplyToEachMessage) {
  json ping = test::node("ping", 0, {test::reader("pong", {1})}, {test::writer("ping", 0)},
                         {test::closed_loop(0, 0, 8, 5'000 * kMillisecond_ns)});
  json pong = test::node("pong", 1, {test::reader("ping", {0})}, {test::writer("pong", 1)},
                         {test::on_message("any", {0}, {0})});
  pong["rules"][0]["echo"] = true;
  ping["dispatch"] = pong["dispatch"] = dispatch();
  json plan = test::plan(library(), {ping, pong});
  // It ends with the last reply. On a busy machine two that poll wait for each other's time slices.
  plan["phases"]["measure_ns"] = 20'000 * kMillisecond_ns;
  const auto recorded = run_trial(plan, 16);
  const auto sent = recorded.sent(0, 0);
  const auto replies = recorded.received(0, 0);
  ASSERT_EQ(sent.size(), 8U);
  ASSERT_EQ(replies.size(), 8U);
  EXPECT_EQ(recorded.writers[0]["resent_after_timeout"], 0);
  for (size_t at = 0; at < sent.size(); ++at) {
    EXPECT_EQ(sent[at].sequence, at);
    EXPECT_EQ(sent[at].intended_ns, 0);
    EXPECT_EQ(replies[at].sequence, at);
    if (at > 0) {
      EXPECT_GE(sent[at].publish_ns, replies[at - 1].taken_ns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Adapters, Dispatching,
                         testing::Values(std::pair{NULL_ADAPTER, "waitset"}, std::pair{NULL_ADAPTER, "poll"},
                                         std::pair{DROPPING_ADAPTER, "waitset"}, std::pair{DROPPING_ADAPTER, "poll"},
                                         std::pair{DROPPING_ADAPTER, "listener"}),
                         [](const auto& given) {
                           return std::string(given.param.first == std::string(NULL_ADAPTER) ? "null_" : "threaded_") +
                                  given.param.second;
                         });

TEST(Timer, IsIntendedAtAbsoluteTimesFromTheCommonStart) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][0]["rules"][0]["offset_ns"] = 700'000;
  const auto recorded = run_trial(plan, 2 * kTimerMessages);
  const auto sent = recorded.sent(0, 0);
  ASSERT_EQ(sent.size(), kTimerMessages);
  for (size_t at = 0; at < sent.size(); ++at) {
    EXPECT_EQ(sent[at].intended_ns, recorded.start_ns + 700'000 + static_cast<int64_t>(at) * 2 * kMillisecond_ns);
  }
}

TEST(Timer, SendsAllThatIsOverdue) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][0]["rules"][0]["work_ns"] = 3 * kMillisecond_ns;  // longer than its period: it is ever later
  const auto sent = run_trial(plan, 2 * kTimerMessages).sent(0, 0);
  ASSERT_EQ(sent.size(), kTimerMessages);
  EXPECT_GE(sent.back().publish_ns - sent.back().intended_ns, 50 * kMillisecond_ns);
  for (size_t at = 1; at < sent.size(); ++at)
    EXPECT_EQ(sent[at].intended_ns - sent[at - 1].intended_ns, 2 * kMillisecond_ns);
}

TEST(Timer, IsCausedByTheNewestMessageOfEachReader) {
  const json source =
      test::node("source", 0, json::array(), {test::writer("t0", 0)}, {test::timer(20 * kMillisecond_ns, {}, {0})});
  json fusion = test::node("fusion", 1, {test::reader("t0", {0})}, {test::writer("t1", 1)},
                           {test::timer(10 * kMillisecond_ns, {0}, {0})});
  fusion["rules"][0]["offset_ns"] = 5 * kMillisecond_ns;
  json late = test::node("late", 2, {test::reader("t2", {})}, {test::writer("t3", 3)},
                         {test::timer(10 * kMillisecond_ns, {0}, {0})});
  const json sink = test::node("sink", 3, {test::reader("t1", {1}), test::reader("t3", {3})}, json::array(),
                               {test::on_message("any", {0, 1}, {})});
  const auto recorded = run_trial(test::plan(NULL_ADAPTER, {source, fusion, late, sink}), 6 + 12 + 12);
  const auto sent = recorded.sent(0, 0);
  const auto taken = recorded.received(1, 0);
  const auto fused = recorded.sent(1, 1);
  ASSERT_EQ(sent.size(), 6U);
  ASSERT_EQ(taken.size(), 6U);
  ASSERT_EQ(fused.size(), 12U);
  for (const SentRecord& record : fused) {
    // The newest of those that were taken before; between handling and publishing the node does nothing else.
    const auto newest = std::find_if(taken.rbegin(), taken.rend(),
                                     [&](const auto& each) { return each.handled_ns <= record.publish_ns; });
    if (newest == taken.rend()) {
      EXPECT_EQ(record.cause_count, 0U);
    } else {
      EXPECT_EQ(record.cause_count, 1U);
      EXPECT_EQ(record.cause_sequence, newest->sequence);
    }
  }
  for (const SentRecord& record : recorded.sent(2, 3)) EXPECT_EQ(record.cause_count, 0U);
}

TEST(AllMessages, FiresWhenEachReaderHasANewOne) {
  const json slow =
      test::node("slow", 0, json::array(), {test::writer("slow", 0)}, {test::timer(8 * kMillisecond_ns, {}, {0})});
  const json fast =
      test::node("fast", 1, json::array(), {test::writer("fast", 1)}, {test::timer(2 * kMillisecond_ns, {}, {0})});
  const json fusion = test::node("fusion", 2, {test::reader("slow", {0}), test::reader("fast", {1})},
                                 {test::writer("out", 2)}, {test::on_message("all", {0, 1}, {0})});
  const auto recorded = run_trial(test::plan(NULL_ADAPTER, {slow, fast, fusion}), 75);
  const auto fused = recorded.sent(2, 2);
  const auto causes = recorded.causes(2, 2);
  ASSERT_EQ(recorded.received(2, 0).size(), 15U);
  ASSERT_EQ(recorded.received(2, 1).size(), kTimerMessages);
  // Fifteen, unless the machine stood still and several messages of a reader came at once.
  ASSERT_GE(fused.size(), 1U);
  ASSERT_LE(fused.size(), 15U);
  ASSERT_EQ(causes.size(), 2 * fused.size());
  for (size_t at = 0; at < fused.size(); ++at) {
    EXPECT_EQ(fused[at].cause_count, 2U);
    EXPECT_EQ(fused[at].cause_stream, 0U);
    EXPECT_EQ(fused[at].cause_sequence, causes[2 * at].sequence);
    EXPECT_EQ(fused[at].first_cause, 2 * at);
    EXPECT_EQ(causes[2 * at].stream, 0U);
    EXPECT_EQ(causes[2 * at + 1].stream, 1U);
    if (at == 0) continue;
    EXPECT_GT(causes[2 * at].sequence, causes[2 * at - 2].sequence) << "a cause was used twice";
    EXPECT_GT(causes[2 * at + 1].sequence, causes[2 * at - 1].sequence) << "a cause was used twice";
  }
}

TEST(AnyMessage, SendsOnAllItsOutputs) {
  const json source =
      test::node("source", 0, json::array(), {test::writer("t0", 0)}, {test::timer(2 * kMillisecond_ns, {}, {0})});
  const json split =
      test::node("split", 1, {test::reader("t0", {0})}, {test::writer("left", 1), test::writer("right", 2)},
                 {test::on_message("any", {0}, {0, 1})});
  const json sink = test::node("sink", 2, {test::reader("left", {1}), test::reader("right", {2})}, json::array(),
                               {test::on_message("any", {0, 1}, {})});
  const auto recorded = run_trial(test::plan(NULL_ADAPTER, {source, split, sink}), 3 * kTimerMessages);
  for (const uint32_t stream : {1U, 2U}) {
    const auto sent = recorded.sent(1, stream);
    ASSERT_EQ(sent.size(), kTimerMessages);
    for (size_t at = 0; at < sent.size(); ++at) EXPECT_EQ(sent[at].cause_sequence, at);
    EXPECT_EQ(recorded.received(2, stream - 1).size(), kTimerMessages);
  }
}

TEST(AnyMessage, IsHandledWhenItsWorkIsDone) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][1]["rules"][0]["work_ns"] = kMillisecond_ns;
  const auto recorded = run_trial(plan, 2 * kTimerMessages);
  const auto taken = recorded.received(1, 0);
  const auto passed = recorded.sent(1, 1);
  ASSERT_EQ(taken.size(), passed.size());
  ASSERT_FALSE(taken.empty());
  for (size_t at = 0; at < taken.size(); ++at) {
    EXPECT_GE(taken[at].handled_ns - taken[at].taken_ns, kMillisecond_ns);
    EXPECT_GE(passed[at].publish_ns, taken[at].handled_ns);
  }
}

TEST(ClosedLoop, SendsAgainAfterTheTimeoutAndCountsIt) {
  for (const char* dispatch : {"waitset", "poll", "listener"}) {
    json ping = test::node("ping", 0, {test::reader("pong", {1})}, {test::writer("ping", 0)},
                           {test::closed_loop(0, 0, 40, 4 * kMillisecond_ns)});
    json pong = test::node("pong", 1, {test::reader("ping", {0})}, {test::writer("pong", 1)},
                           {test::on_message("any", {0}, {0})});
    pong["rules"][0]["echo"] = true;
    ping["dispatch"] = pong["dispatch"] = dispatch;
    json plan = test::plan(DROPPING_ADAPTER, {ping, pong});
    plan["phases"]["measure_ns"] = 60'000 * kMillisecond_ns;
    const auto recorded = run_trial(plan, 36 + 33);
    const auto sent = recorded.sent(0, 0);
    const auto replies = recorded.received(0, 0);
    ASSERT_EQ(sent.size(), 40U) << dispatch;
    std::set<uint64_t> answered;
    for (const ReceivedRecord& reply : replies) answered.insert(reply.sequence);
    // The adapter drops every tenth message of each writer: four pings, and three of the 36 pongs.
    EXPECT_EQ(answered.size(), 33U) << dispatch;
    const auto in_time = [&](size_t at) {
      const auto due = [&](const auto& each) {
        return each.sequence == at && each.taken_ns <= sent[at + 1].publish_ns;
      };
      return std::ranges::any_of(replies, due);
    };
    uint64_t again = 0;
    for (size_t at = 0; at + 1 < sent.size(); ++at) {
      EXPECT_EQ(sent[at].sequence, at);
      if (in_time(at)) continue;
      ++again;
      if (at > 0) {
        EXPECT_GE(sent[at + 1].publish_ns - sent[at - 1].publish_ns, 4 * kMillisecond_ns) << dispatch;
      }
    }
    EXPECT_EQ(recorded.writers[0]["resent_after_timeout"], again) << dispatch;
    // Number 39 is dropped too, but has no successor. A machine that stands still makes more replies too late.
    EXPECT_GE(again, 6U) << dispatch;
    for (const SentRecord& reply : recorded.sent(1, 1)) EXPECT_EQ(reply.sequence, reply.cause_sequence) << dispatch;
  }
}

TEST(ClosedLoop, EndsWhenNoRecordFitsAnyMore) {
  json ping = test::node("ping", 0, {test::reader("pong", {1})}, {test::writer("ping", 0)},
                         {test::closed_loop(0, 0, 0, 5'000 * kMillisecond_ns)});
  json pong = test::node("pong", 1, {test::reader("ping", {0})}, {test::writer("pong", 1)},
                         {test::on_message("any", {0}, {0})});
  pong["rules"][0]["echo"] = true;
  ping["writers"][0]["capacity"] = 20;
  json plan = test::plan(NULL_ADAPTER, {ping, pong});
  plan["phases"]["measure_ns"] = 20'000 * kMillisecond_ns;
  const auto recorded = run_trial(plan, 40);
  EXPECT_EQ(recorded.sent(0, 0).size(), 20U);
  EXPECT_FALSE(recorded.writers[0]["recorder_full"]);
  EXPECT_FALSE(recorded.readers[0]["recorder_full"]);
  EXPECT_EQ(recorded.writers[0]["sent"], 20);
  ASSERT_EQ(recorded.warnings.size(), 1U);
  EXPECT_NE(recorded.warnings[0].find("ping"), std::string::npos) << recorded.warnings[0];
}

TEST(Payload, ThatIsNotWhatTheReaderExpectsIsCorrupted) {
  json plan = test::pipeline_plan(DROPPING_ADAPTER);
  plan["nodes"][1]["readers"][0]["payload_bytes"] = 256;
  const auto recorded = run_trial(plan, 10);
  const auto taken = recorded.received(1, 0);
  ASSERT_FALSE(taken.empty());
  EXPECT_TRUE(std::ranges::all_of(taken, [](const auto& each) { return (each.flags & kReceivedCorrupted) != 0; }));
  EXPECT_EQ(recorded.readers[0]["corrupted"], taken.size());
  EXPECT_TRUE(recorded.sent(1, 1).empty()) << "a corrupted message was passed on";
}

TEST(Touch, IsCheckedOnlyWhereBothSidesTouch) {
  for (const char* touch : {"header", "write", "read", "write+read"}) {
    json plan = test::pipeline_plan(NULL_ADAPTER);
    plan["touch"] = touch;
    const auto recorded = run_trial(plan, 2 * kTimerMessages);
    EXPECT_EQ(recorded.received(2, 0).size(), kTimerMessages) << touch;
    EXPECT_EQ(recorded.readers[1]["corrupted"], 0) << touch;
  }
}

// A source that takes fifteen milliseconds for each message and has one due every two: always late.
test::Recorded late_source(const std::string& policy) {
  json plan = test::pipeline_plan(NULL_ADAPTER, "waitset");
  json& rule = plan["nodes"][0]["rules"][0];
  rule["work_ns"] = 15 * kMillisecond_ns;
  if (!policy.empty()) rule["schedule"] = {{"kind", "periodic"}, {"late", policy}};
  return run_trial(plan);
}

void expect_original_schedule(const test::Recorded& recorded) {
  for (const SentRecord& record : recorded.sent(0, 0)) {
    const auto number = static_cast<int64_t>(record.sequence);
    EXPECT_EQ(record.intended_ns, recorded.start_ns + number * 2 * kMillisecond_ns);
  }
  EXPECT_EQ(recorded.writers[0]["due"], 50);
}

TEST(LatePolicy, BurstSendsEveryMessageThatWasDue) {
  for (const char* policy : {"", "burst"}) {
    const auto recorded = late_source(policy);
    expect_original_schedule(recorded);
    const auto sent = recorded.sent(0, 0);
    for (size_t at = 0; at < sent.size(); ++at) EXPECT_EQ(sent[at].sequence, at);
    EXPECT_EQ(recorded.writers[0]["skipped"], 0);
    EXPECT_EQ(recorded.writers[0]["shift_ns"], 0);
  }
}

TEST(LatePolicy, SkipDropsWhatIsPastAndLeavesItsNumbersOut) {
  const auto recorded = late_source("skip");
  expect_original_schedule(recorded);
  const auto sent = recorded.sent(0, 0);
  ASSERT_FALSE(sent.empty());
  EXPECT_GT(recorded.writers[0]["skipped"], 0);
  const uint64_t skipped = recorded.writers[0]["skipped"];
  // What is skipped last has no successor whose number could tell, and nothing is due after the sources' end.
  EXPECT_LE(sent.back().sequence + 1, sent.size() + skipped);
  EXPECT_LE(sent.size() + skipped, kTimerMessages);
  for (size_t at = 1; at < sent.size(); ++at) EXPECT_GT(sent[at].sequence, sent[at - 1].sequence);
}

TEST(LatePolicy, ShiftMovesTheScheduleButNotTheIntendedTimes) {
  const auto recorded = late_source("shift");
  expect_original_schedule(recorded);
  const auto sent = recorded.sent(0, 0);
  ASSERT_GT(sent.size(), 1U);
  for (size_t at = 0; at < sent.size(); ++at) EXPECT_EQ(sent[at].sequence, at);
  EXPECT_LE(sent.size(), 120U / 15U + 1U);
  const int64_t shift_ns = recorded.writers[0]["shift_ns"];
  EXPECT_GT(shift_ns, 0);
  // The last message was not late by the moved schedule, and is by the original one.
  EXPECT_GE(sent.back().publish_ns - sent.back().intended_ns, shift_ns);
}

TEST(Schedules, IntendedTimesAreTheSchedules) {
  json plan = test::pipeline_plan(NULL_ADAPTER, "waitset");
  plan["nodes"][0]["rules"][0]["schedule"] = {{"kind", "recorded"}, {"intervals_ns", {1'000'000, 0, 5'000'000}}};
  const auto recorded = run_trial(plan, 2 * 59);
  const auto sent = recorded.sent(0, 0);
  ASSERT_GE(sent.size(), 6U);
  constexpr int64_t kTimes_ns[] = {0, 1'000'000, 1'000'000, 6'000'000, 7'000'000, 7'000'000};
  for (size_t at = 0; at < std::size(kTimes_ns); ++at)
    EXPECT_EQ(sent[at].intended_ns, recorded.start_ns + kTimes_ns[at]);
}

}  // namespace
}  // namespace lagometer::engine
