// SPDX-License-Identifier: Apache-2.0
// What a node with several readers does when one of them has data.
#include <gtest/gtest.h>

#include "trial.hpp"

namespace lagometer::engine {
namespace {

using test::json;
using test::kMillisecond_ns;

constexpr size_t kMessages = 60;  // 120 ms of sending, every 2 ms

/// One reader that much is sent to, and one that gets a message at the start and no more.
json two_readers(const std::string& library) {
  return test::plan(library, {test::node("often", 0, json::array(), {test::writer("often", 0)},
                                         {test::timer(2 * kMillisecond_ns, {}, {0})}),
                              test::node("seldom", 1, json::array(), {test::writer("seldom", 1)},
                                         {test::timer(60'000 * kMillisecond_ns, {}, {0})}),
                              test::node("sink", 2, {test::reader("often", {0}), test::reader("seldom", {1})},
                                         json::array(), {test::on_message("any", {0, 1}, {})})});
}

uint64_t asked_in_vain(const test::Recorded& recorded, uint32_t reader) {
  for (const json& told : recorded.readers) {
    if (told["node"] == 2 && told["reader"] == reader) return told["counters"]["overwritten"];
  }
  throw std::runtime_error("this reader is not in the results");
}

std::string refusal(const json& plan) {
  try {
    const Session session(parse_plan(plan.dump()), -1);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(Waitset, TakesFromTheReadersAloneThatHaveData) {
  const auto recorded = test::run_trial(two_readers(WAITING_ADAPTER), kMessages + 1);
  EXPECT_EQ(recorded.received(2, 0).size(), kMessages);
  EXPECT_EQ(recorded.received(2, 1).size(), 1U);
  EXPECT_EQ(asked_in_vain(recorded, 0), 0U);
  EXPECT_EQ(asked_in_vain(recorded, 1), 0U);
}

TEST(Waitset, TakesFromAllWhereAnAdapterOfTheFirstVersionNamesNone) {
  const auto recorded = test::run_trial(two_readers(WAITING_1_0_ADAPTER), kMessages + 1);
  EXPECT_EQ(recorded.received(2, 0).size(), kMessages);
  EXPECT_EQ(recorded.received(2, 1).size(), 1U);
  EXPECT_GT(asked_in_vain(recorded, 1), 0U);
}

json two_contexts(const std::string& library, const std::string& other = "") {
  json plan = two_readers(library);
  if (!other.empty()) {
    plan["adapters"].push_back(plan["adapters"][0]);
    plan["adapters"][1]["library"] = other;
  }
  plan["contexts"].push_back({{"adapter", other.empty() ? 0 : 1}, {"domain", 1}, {"name", "other"}});
  plan["nodes"][1]["writers"][0]["context"] = 1;
  plan["nodes"][2]["readers"][1]["context"] = 1;
  return plan;
}

TEST(Waitset, SpansTheContextsOfAnAdapterThatCan) {
  const auto recorded = test::run_trial(two_contexts(NULL_ADAPTER), kMessages + 1);
  EXPECT_EQ(recorded.received(2, 0).size(), kMessages);
  EXPECT_EQ(recorded.received(2, 1).size(), 1U);
}

TEST(Waitset, IsRefusedForContextsOfAnAdapterThatCanNot) {
  const std::string text = refusal(two_contexts(WAITING_1_0_ADAPTER));
  EXPECT_NE(text.find("node sink"), std::string::npos) << text;
  EXPECT_NE(text.find("several contexts (waitset_contexts); use poll or listener"), std::string::npos) << text;
}

TEST(Waitset, IsRefusedForReadersOfTwoAdapters) {
  const std::string text = refusal(two_contexts(NULL_ADAPTER, WAITING_ADAPTER));
  EXPECT_NE(text.find("readers of two adapters; use poll or listener"), std::string::npos) << text;
}

}  // namespace
}  // namespace lagometer::engine
