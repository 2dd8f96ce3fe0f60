// SPDX-License-Identifier: Apache-2.0
// What is created, in which order, and what is said when it can't be.
#include "session.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
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
  session.look_for_readers(true);
  EXPECT_EQ(session.missing().size(), 2U) << "what was sent before anyone was heard says nothing of the way since";
  test::match(session, now_ns() + plan.discovery_timeout_ns);
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

TEST(Session, RecordsNothingMoreOnceItIsStopped) {
  json plan = test::pipeline_plan(DROPPING_ADAPTER, "listener");
  plan["phases"]["measure_ns"] = 60'000 * test::kMillisecond_ns;
  for (json& node : plan["nodes"]) {
    for (json& rule : node["rules"]) rule["work_ns"] = 30 * test::kMillisecond_ns;
  }
  const int descriptor = memfd_create("test-records", MFD_CLOEXEC);
  const int kept = dup(descriptor);
  std::vector<std::byte> stopped;
  {
    Session session(parse_plan(plan.dump()), descriptor);
    session.start(now_ns(), now_ns() + 60'000 * test::kMillisecond_ns);
    while (session.recorder().count(LaneKind::sent) < 2) sched_yield();
    session.stop();
    const auto block = session.recorder().packed();
    stopped.assign(block.begin(), block.end());
  }
  // With the session's end no thread of the adapter is left either: a callback that was under way would show now.
  struct stat status{};
  ASSERT_EQ(fstat(kept, &status), 0);
  std::vector<std::byte> ended(static_cast<size_t>(status.st_size));
  ASSERT_EQ(pread(kept, ended.data(), ended.size(), 0), status.st_size);
  close(kept);
  for (const uint32_t node : {1U, 2U}) {
    EXPECT_EQ(test::decode(stopped).received(node, 0).size(), test::decode(ended).received(node, 0).size()) << node;
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
  test::match(session, now_ns() + 10'000 * test::kMillisecond_ns, 1);
  ASSERT_EQ(session.missing().size(), 1U);
  EXPECT_EQ(session.missing()[0]["node"], "sink");
}

TEST(Session, SaysWhichLibraryIsMissing) {
  const std::string text = refusal(test::pipeline_plan("/nowhere/liblagometer_absent.so"));
  EXPECT_NE(text.find("/nowhere/liblagometer_absent.so"), std::string::npos) << text;
}

TEST(Session, RefusesALibraryThatIsNoAdapter) {
  const std::string text = refusal(test::pipeline_plan("libz.so.1"));
  EXPECT_NE(text.find("is not an adapter"), std::string::npos) << text;
}

TEST(Session, TellsAnAdapterThatCanNotBeOpenedFromOneThatFails) {
  const auto made = [](const json& plan) { const Session session(parse_plan(plan.dump()), -1); };
  EXPECT_THROW(made(test::pipeline_plan("/nowhere/liblagometer_absent.so")), AdapterMissing);
  EXPECT_THROW(made(test::pipeline_plan("libz.so.1")), AdapterMissing);
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][0]["writers"][0]["qos"] = {{"history", "keep_all"}};
  try {
    made(plan);
    FAIL() << "null took keep_all";
  } catch (const AdapterMissing& error) {
    FAIL() << error.what();
  } catch (const AdapterError&) {
    SUCCEED();
  }
}

size_t threads_of_nodes() {
  size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name.starts_with("node:") ? 1U : 0U;
  }
  return count;
}

TEST(Session, LeavesANodesTimeToTheMiddlewaresExecutor) {
  for (const auto& [adapter, threads] : {std::pair{DROPPING_ADAPTER, 1U}, std::pair{TIMING_ADAPTER, 0U}}) {
    Session session(parse_plan(test::pipeline_plan(adapter, "listener").dump()), -1);
    session.start(now_ns(), now_ns() + 20 * test::kMillisecond_ns);  // by then a thread has its name
    while (session.recorder().count(LaneKind::sent) == 0) sched_yield();
    EXPECT_EQ(threads_of_nodes(), threads) << adapter;
  }
  // Who is not called back keeps the time itself.
  const Session polling(parse_plan(test::pipeline_plan(TIMING_ADAPTER, "poll").dump()), -1);
  const int64_t deadline_ns = now_ns() + 10'000 * test::kMillisecond_ns;
  while (threads_of_nodes() < 3 && now_ns() < deadline_ns) sched_yield();
  EXPECT_EQ(threads_of_nodes(), 3U);
}

TEST(Session, SendsByTheExecutorsTimerAtTheScheduledTimes) {
  const auto recorded = test::run_trial(test::pipeline_plan(TIMING_ADAPTER, "listener"));
  const auto by_thread = test::run_trial(test::pipeline_plan(DROPPING_ADAPTER, "listener"));
  ASSERT_EQ(recorded.sent(0, 0).size(), by_thread.sent(0, 0).size());
  int64_t intended_ns = recorded.start_ns;
  for (const SentRecord& record : recorded.sent(0, 0)) {
    EXPECT_EQ(record.intended_ns, intended_ns);
    EXPECT_GE(record.publish_ns, record.intended_ns);
    intended_ns += 2 * test::kMillisecond_ns;
  }
}

TEST(Session, GivesTheAdaptersOwnWords) {
  json plan = test::pipeline_plan(NULL_ADAPTER);
  plan["nodes"][0]["writers"][0]["qos"] = {{"history", "keep_all"}};
  const std::string text = refusal(plan);
  EXPECT_NE(text.find("writer_create"), std::string::npos) << text;
  EXPECT_NE(text.find("keep_last"), std::string::npos) << text;
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
