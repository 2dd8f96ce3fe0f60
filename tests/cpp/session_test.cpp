// SPDX-License-Identifier: Apache-2.0
// What is created, in which order, and what is said when it can't be.
#include "session.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "clock.hpp"
#include "trial.hpp"

namespace lagometer::engine {
namespace {

using test::json;

std::string refusal(const json& plan) {
  try {
    Session session(parse_plan(plan.dump()), -1);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Session, SendsNothingButProbesBeforeTheStart) {
  const Plan plan = parse_plan(test::pipeline_plan(NULL_ADAPTER).dump());
  Session session(plan, -1);
  EXPECT_EQ(session.missing().size(), 2U);
  EXPECT_EQ(session.missing()[0]["node"], "relay");
  EXPECT_EQ(session.missing()[0]["streams"], json::array({0}));
  session.send_probes();
  while (!session.missing().empty()) sched_yield();
  session.stop();
  for (const auto& [key, records] : test::decode(session.recorder().packed()).lanes) EXPECT_TRUE(records.empty());
}

TEST(Session, SendsOnlyBetweenTheStartAndTheEndOfTheSources) {
  const auto recorded = test::run_trial(test::pipeline_plan(NULL_ADAPTER));
  ASSERT_FALSE(recorded.sent(0, 0).empty());
  for (const SentRecord& record : recorded.sent(0, 0)) {
    EXPECT_GE(record.publish_ns, recorded.start_ns);
    EXPECT_LT(record.intended_ns, recorded.start_ns + 120 * test::kMillisecond_ns);
  }
}

TEST(Session, EndsWithoutEverHavingStarted) {
  for (const char* dispatch : {"waitset", "poll"}) {
    const Session session(parse_plan(test::pipeline_plan(NULL_ADAPTER, dispatch).dump()), -1);
  }
  SUCCEED();
}

TEST(Session, KeepsAContextOfAnotherDomainApart) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["contexts"].push_back({{"adapter", 0}, {"domain", 1}, {"name", "other"}});
  plan["nodes"][2]["readers"][0]["context"] = 1;
  Session session(parse_plan(plan.dump()), -1);
  const int64_t deadline_ns = now_ns() + 10'000 * test::kMillisecond_ns;
  while (session.missing().size() > 1 && now_ns() < deadline_ns) session.send_probes();
  ASSERT_EQ(session.missing().size(), 1U);
  EXPECT_EQ(session.missing()[0]["node"], "sink");
}

TEST(Session, SaysWhichLibraryIsMissing) {
  const std::string text = refusal(test::pipeline_plan("/nowhere/liblagometer_absent.so"));
  EXPECT_NE(text.find("/nowhere/liblagometer_absent.so"), std::string::npos) << text;
}

TEST(Session, RefusesALibraryThatIsNoAdapter) {
  const std::string text = refusal(test::pipeline_plan("libz.so.1"));
  EXPECT_NE(text.find("is no adapter"), std::string::npos) << text;
}

TEST(Session, GivesTheAdaptersOwnWords) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][0]["writers"][0]["qos"] = {{"history", "keep_all"}};
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("writer_create"), std::string::npos) << text;
  EXPECT_NE(text.find("keep_last"), std::string::npos) << text;
}

TEST(Session, RefusesAWaitsetOverTwoContexts) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["contexts"].push_back(plan["contexts"][0]);
  plan["nodes"][2]["readers"].push_back(test::reader("t0", {}));
  plan["nodes"][2]["readers"][1]["context"] = 1;
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("sink"), std::string::npos) << text;
  EXPECT_NE(text.find("contexts"), std::string::npos) << text;
}

TEST(Session, SaysThatTheRuntimeDirectoryCanNotBeMade) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["runtime_directory"] = "/proc/self/nothing";
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("/proc/self/nothing"), std::string::npos) << text;
}

TEST(Session, RefusesRecordsThatMemoryCanNotHold) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  for (json& node : plan["nodes"]) {
    for (json& writer : node["writers"]) writer["capacity"] = 1 << 26;
    for (json& reader : node["readers"]) reader["capacity"] = 1 << 26;
  }
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("shorten the measure phase"), std::string::npos) << text;
}

}  // namespace
}  // namespace lagometer::engine
