// SPDX-License-Identifier: Apache-2.0
// One thread for each node or one for all nodes of the process, and what a node that is busy does to the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "clock.hpp"
#include "trial.hpp"

namespace lagometer::engine {
namespace {

using test::json;
using test::kMillisecond_ns;

constexpr size_t kMessages = 6;  // 120 ms of sending, every 20 ms
constexpr int64_t kBusy_ns = 5 * kMillisecond_ns;

/// A source that sends to two at the same time, of which the first is busy with each message.
json busy_and_other(const std::string& library, const std::string& dispatch, const char* threads) {
  json busy = test::on_message("any", {0}, {});
  busy["work_ns"] = kBusy_ns;
  json nodes = {test::node("source", 0, json::array(), {test::writer("a", 0), test::writer("b", 1)},
                           {test::timer(20 * kMillisecond_ns, {}, {0, 1})}),
                test::node("busy", 1, {test::reader("a", {0})}, json::array(), {busy}),
                test::node("other", 2, {test::reader("b", {1})}, json::array(), {test::on_message("any", {0}, {})})};
  for (json& node : nodes) node["dispatch"] = dispatch;
  json plan = test::plan(library, nodes);
  plan["threads"] = threads;
  return plan;
}

/// From the publishing of each message to when the other node took it, the shortest first.
std::vector<int64_t> latencies_of_the_other(const test::Recorded& recorded) {
  const auto sent = recorded.sent(0, 1);
  std::vector<int64_t> found;
  for (const ReceivedRecord& record : recorded.received(2, 0))
    found.push_back(record.taken_ns - sent.at(record.sequence).publish_ns);
  std::sort(found.begin(), found.end());
  return found;
}

class Threads : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static test::Recorded run(const char* threads) {
    return test::run_trial(busy_and_other(GetParam().first, GetParam().second, threads), 2 * kMessages);
  }
};

TEST_P(Threads, OfTheProcessMakeTheOthersWaitForABusyNode) {
  const auto recorded = run("per-process");
  const auto latencies = latencies_of_the_other(recorded);
  ASSERT_EQ(latencies.size(), kMessages);
  EXPECT_GE(latencies.front(), kBusy_ns);
  const auto busy = recorded.received(1, 0);
  const auto other = recorded.received(2, 0);
  ASSERT_EQ(busy.size(), kMessages);
  for (const ReceivedRecord& record : busy) {
    for (const ReceivedRecord& beside : other)
      EXPECT_TRUE(beside.handled_ns <= record.taken_ns || beside.taken_ns >= record.handled_ns);
  }
}

TEST_P(Threads, OfNodesMakeNobodyWait) {
  const auto latencies = latencies_of_the_other(run("per-node"));
  ASSERT_EQ(latencies.size(), kMessages);
  EXPECT_LT(latencies.front(), kBusy_ns);
}

TEST_P(Threads, OfTheProcessCarryAPipelineAndItsCauses) {
  json plan = test::pipeline_plan(GetParam().first, GetParam().second);
  plan["threads"] = "per-process";
  const auto recorded = test::run_trial(plan, 2 * 60);
  ASSERT_EQ(recorded.received(2, 0).size(), 60U);
  for (const SentRecord& record : recorded.sent(1, 1)) EXPECT_EQ(record.cause_sequence, record.sequence);
}

INSTANTIATE_TEST_SUITE_P(Dispatch, Threads,
                         testing::Values(std::pair{NULL_ADAPTER, "waitset"}, std::pair{NULL_ADAPTER, "poll"},
                                         std::pair{WAITING_ADAPTER, "waitset"},
                                         std::pair{WAITING_1_0_ADAPTER, "waitset"},
                                         std::pair{EXECUTING_ADAPTER, "listener"}),
                         [](const auto& given) {
                           const std::string stem = std::filesystem::path(given.param.first).stem();
                           return stem.substr(sizeof "liblagometer_" - 1) + "_" + given.param.second;
                         });

TEST(Turns, AreTakenMessageByMessage) {
  for (const char* dispatch : {"waitset", "poll"}) {
    json plan = busy_and_other(NULL_ADAPTER, dispatch, "per-process");
    plan["nodes"][0]["rules"][0]["schedule"] = {{"kind", "burst"}, {"messages", kMessages}};
    const auto recorded = test::run_trial(plan, 2 * kMessages);
    const auto busy = recorded.received(1, 0);
    const auto other = recorded.received(2, 0);
    ASSERT_EQ(busy.size(), kMessages) << dispatch;
    ASSERT_EQ(other.size(), kMessages) << dispatch;
    for (size_t at = 0; at + 1 < kMessages; ++at) EXPECT_LT(other[at].taken_ns, busy[at + 1].taken_ns) << dispatch;
  }
}

TEST(Turns, OfTimersOnOneThreadKeepTheirOwnIntendedTimes) {
  json slow = test::timer(20 * kMillisecond_ns, {}, {0});
  slow["work_ns"] = kBusy_ns;
  json plan = test::plan(NULL_ADAPTER, {test::node("slow", 0, json::array(), {test::writer("a", 0)}, {slow}),
                                        test::node("late", 1, json::array(), {test::writer("b", 1)},
                                                   {test::timer(20 * kMillisecond_ns, {}, {0})}),
                                        test::node("sink", 2, {test::reader("a", {0}), test::reader("b", {1})},
                                                   json::array(), {test::on_message("any", {0, 1}, {})})});
  plan["threads"] = "per-process";
  const auto recorded = test::run_trial(plan, 2 * kMessages);
  const auto late = recorded.sent(1, 1);
  ASSERT_EQ(late.size(), kMessages);
  EXPECT_GE(late[0].publish_ns - late[0].intended_ns, kBusy_ns) << "the other node's work is before it";
  for (size_t at = 0; at < late.size(); ++at) {
    EXPECT_EQ(late[at].intended_ns, recorded.start_ns + static_cast<int64_t>(at) * 20 * kMillisecond_ns);
    for (const SentRecord& worked : recorded.sent(0, 0))
      EXPECT_TRUE(late[at].publish_ns <= worked.publish_ns - kBusy_ns || late[at].publish_ns >= worked.publish_ns);
  }
}

std::vector<std::string> names_of_threads() {
  std::vector<std::string> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    std::getline(std::ifstream(task.path() / "comm"), found.emplace_back());
  return found;
}

size_t count_of(const char* begin) {
  const auto names = names_of_threads();
  return static_cast<size_t>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) { return name.starts_with(begin); }));
}

TEST(Session, HasOneThreadOrExecutorForAllNodesWhereThePlanSaysSo) {
  for (const auto& [library, dispatch, name] :
       {std::tuple{NULL_ADAPTER, "waitset", "node"}, {EXECUTING_ADAPTER, "listener", "executor"}}) {
    for (const auto& [threads, count] : {std::pair{"per-process", 1U}, {"per-node", 3U}}) {
      const Session session(parse_plan(busy_and_other(library, dispatch, threads).dump()), -1);
      const int64_t deadline_ns = now_ns() + 10'000 * kMillisecond_ns;
      while (count_of(name) < count && now_ns() < deadline_ns) sched_yield();
      EXPECT_EQ(count_of(name), count) << dispatch << " " << threads;
    }
  }
}

TEST(Session, EndsOneThreadThatHasNotBegun) {
  for (const char* dispatch : {"waitset", "poll"})
    const Session session(parse_plan(busy_and_other(NULL_ADAPTER, dispatch, "per-process").dump()), -1);
  SUCCEED();
}

std::string refusal_of(const json& plan) {
  try {
    const Session session(parse_plan(plan.dump()), -1);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// The same with the last node in another context, of the same adapter or of another.
json in_two_contexts(json plan, const char* other = nullptr) {
  if (other != nullptr) {
    plan["adapters"].push_back(plan["adapters"][0]);
    plan["adapters"][1]["library"] = other;
  }
  plan["contexts"].push_back({{"adapter", other == nullptr ? 0 : 1}, {"domain", 0}, {"name", "other"}});
  plan["nodes"][2]["readers"][0]["context"] = 1;
  return plan;
}

TEST(OneThread, IsRefusedWhereItCanNotServeAll) {
  const auto one = [](const char* library, const char* dispatch) {
    return busy_and_other(library, dispatch, "per-process");
  };
  const std::string who = "one thread for all nodes (threads per-process)";
  EXPECT_EQ(refusal_of(one(DROPPING_ADAPTER, "listener")),
            "dropping calls back on its own threads, so one thread can't serve all nodes (threads per-process); use "
            "waitset or poll");
  EXPECT_EQ(refusal_of(in_two_contexts(one(EXECUTING_ADAPTER, "listener"))),
            "one executor can't serve the nodes of 2 contexts (threads per-process); use waitset or poll, or one "
            "participant and one domain");
  EXPECT_EQ(refusal_of(in_two_contexts(one(NULL_ADAPTER, "waitset"), WAITING_ADAPTER)),
            who +
                ": one waitset can't wait for readers of two adapters; use poll, or a thread for each node (threads "
                "per-node)");
  EXPECT_EQ(refusal_of(in_two_contexts(one(WAITING_1_0_ADAPTER, "waitset"))),
            who +
                ": a waitset of waiting can't wait for readers of several contexts (waitset_contexts); use poll, or a "
                "thread for each node (threads per-node)");
  EXPECT_EQ(refusal_of(in_two_contexts(one(NULL_ADAPTER, "waitset"))), "");
  EXPECT_EQ(refusal_of(in_two_contexts(one(NULL_ADAPTER, "poll"), WAITING_ADAPTER)), "");
}

}  // namespace
}  // namespace lagometer::engine
