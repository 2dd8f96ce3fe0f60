// SPDX-License-Identifier: Apache-2.0
// Plans, read into their types. What a worker refuses, and with which words, is tested of both workers
// (tests/integration/worker/test_worker_plans.py).
#include "plan.hpp"

#include <gtest/gtest.h>

#include <string>

#include "payload_type.hpp"
#include "trial.hpp"

namespace lagometer::engine {
namespace {

using test::json;
using Pointer = json::json_pointer;

json valid_plan() {
  json plan = test::pipeline_plan("/lib/liblagometer_null.so");
  plan["nodes"][0]["rules"][0]["offset_ns"] = 5;
  plan["nodes"].push_back(test::node("ping", 3, {test::reader("pong", {3})}, {test::writer("ping", 2)},
                                     {test::closed_loop(0, 0, 10, 5000)}));
  return plan;
}

std::string refusal(const std::string& text) {
  try {
    parse_plan(text);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "(accepted)";
}

TEST(Plan, IsReadWhole) {
  const Plan plan = parse_plan(valid_plan().dump());
  EXPECT_EQ(plan.cell, "test");
  EXPECT_TRUE(plan.standalone);
  EXPECT_EQ(plan.warmup_ns, 20 * test::kMillisecond_ns);
  EXPECT_EQ(plan.measure_ns, 100 * test::kMillisecond_ns);
  EXPECT_TRUE(plan.touch.read);
  EXPECT_TRUE(plan.touch.write);
  EXPECT_EQ(plan.adapters[0].library, "/lib/liblagometer_null.so");
  ASSERT_EQ(plan.nodes.size(), 4U);
  const NodePlan& source = plan.nodes[0];
  EXPECT_EQ(source.dispatch, Dispatch::waitset);
  EXPECT_EQ(source.rules[0].trigger, Trigger::timer);
  EXPECT_EQ(source.rules[0].period_ns, 2 * test::kMillisecond_ns);
  EXPECT_EQ(source.rules[0].offset_ns, 5);
  EXPECT_EQ(source.writers[0].qos.reliable, true);
  EXPECT_EQ(source.writers[0].qos.depth, 64U);
  EXPECT_EQ(source.writers[0].qos.transient_local, std::nullopt);
  EXPECT_EQ(plan.nodes[1].readers[0].streams, std::vector<uint32_t>{0});
  EXPECT_EQ(plan.nodes[3].rules[0].trigger, Trigger::closed_loop);
  EXPECT_EQ(plan.nodes[3].rules[0].messages_max, 10U);
  EXPECT_EQ(plan.nodes[3].rules[0].timeout_ns, 5000);
}

TEST(Plan, HasASizeThatItsTypeHas) {
  const auto found = [](const char* type, uint64_t bytes) {
    json plan = valid_plan();
    plan["nodes"][0]["writers"][0]["type"] = type;
    plan["nodes"][0]["writers"][0]["payload_bytes"] = bytes;
    return refusal(plan.dump());
  };
  const std::string refused = "nodes[0].writers[0].payload_bytes: is ";
  EXPECT_EQ(found("string", 3).find(refused), 0U);
  EXPECT_EQ(found("string", 4), "(accepted)");
  EXPECT_EQ(found("Image", 15).find(refused), 0U);
  EXPECT_EQ(found("Image", 17), "(accepted)");
  EXPECT_EQ(found("Imu", 327).find(refused), 0U);
  EXPECT_EQ(found("Imu", 328), "(accepted)");
  EXPECT_EQ(found("Imu", 329).find(refused), 0U);
  EXPECT_EQ(found("PointCloud2", 24).find(refused), 0U);
  EXPECT_EQ(found("PointCloud2", 32), "(accepted)");
}

TEST(PayloadType, HasProbesThatHoldAnEnvelope) {
  for (const PayloadType& type : kPayloadTypes) {
    const uint64_t payload_bytes = type.bytes_min == type.bytes_max ? type.bytes_min : uint64_t{1024};
    const uint64_t bytes = type.probe_bytes(payload_bytes);
    EXPECT_TRUE(type.has_size(bytes)) << type.name;
    EXPECT_GE(bytes, type.envelope_bytes()) << type.name;
    EXPECT_TRUE(type.one_size ? bytes == payload_bytes : bytes <= payload_bytes) << type.name;
    EXPECT_EQ(&payload_type(type.name), &type);
  }
}

TEST(Plan, NamesEveryKeyThatIsMissing) {
  const json whole = valid_plan();
  const json flat = whole.flatten();
  // Options that stand for a default when left out: QoS and echo.
  for (const auto& [pointer, value] : flat.items()) {
    const Pointer at(pointer);
    if (at.parent_pointer().empty() || !whole[at.parent_pointer()].is_object() ||
        pointer.find("/qos/") != std::string::npos)
      continue;
    json plan = whole;
    plan[at.parent_pointer()].erase(at.back());
    const std::string text = refusal(plan.dump());
    EXPECT_NE(text.find(at.back() + ": is missing"), std::string::npos) << pointer << ": " << text;
  }
}

TEST(Plan, ThatIsNotJsonIsRefused) {
  const std::string whole = valid_plan().dump();
  for (const std::string& text :
       {std::string(), std::string("{"), whole.substr(0, whole.size() / 2), std::string("\xff\xfe{}"),
        std::string("[NaN]"), whole + "{}", std::string("{\"protocol\":1e999}")}) {
    EXPECT_EQ(refusal(text).rfind("plan: is not JSON", 0), 0U) << text.substr(0, 40);
  }
  EXPECT_EQ(refusal("[]"), "plan: must be an object, not a list");
}

TEST(Plan, ThatIsNestedTooDeeplyIsRefused) {
  json plan = valid_plan();
  plan["adapters"][0]["options"]["deep"] = 0;
  std::string text = plan.dump();
  const std::string deep = "\"deep\":" + std::string(200'000, '[') + std::string(200'000, ']');
  text.replace(text.find("\"deep\":0"), 8, deep);
  EXPECT_NE(refusal(text).find("nested"), std::string::npos);
}

TEST(Plan, ReadsSchedules) {
  json plan = valid_plan();
  json& schedule = plan["nodes"][0]["rules"][0]["schedule"];
  const auto parsed = [&] { return parse_plan(plan.dump()).nodes[0].rules[0].schedule; };
  schedule = {{"kind", "poisson"}, {"seed", 18446744073709551615U}, {"late", "shift"}};
  EXPECT_EQ(parsed().kind, ScheduleKind::poisson);
  EXPECT_EQ(parsed().seed, 18446744073709551615U);
  EXPECT_EQ(parsed().late, LatePolicy::shift);
  schedule = {{"kind", "burst"}, {"messages", 5}};
  EXPECT_EQ(parsed().messages, 5U);
  EXPECT_EQ(parsed().late, LatePolicy::burst);
  schedule = {{"kind", "ramp"}, {"end_period_ns", 2000}, {"begin_ns", 7}, {"duration_ns", 9}, {"late", "skip"}};
  EXPECT_EQ(parsed().end_period_ns, 2000);
  EXPECT_EQ(parsed().begin_ns, 7);
  EXPECT_EQ(parsed().duration_ns, 9);
  schedule = {{"kind", "recorded"}, {"intervals_ns", {0, 4000}}};
  EXPECT_EQ(*parsed().intervals_ns, (std::vector<int64_t>{0, 4000}));
}

TEST(Plan, RefusesSchedulesThatNeverAdvance) {
  json plan = valid_plan();
  json& schedule = plan["nodes"][0]["rules"][0]["schedule"];
  for (const auto& intervals : {json{0, 0}, json{0, 10}}) {
    schedule = {{"kind", "recorded"}, {"intervals_ns", intervals}};
    EXPECT_EQ(refusal(plan.dump()).rfind("nodes[0].rules[0].schedule.intervals_ns: must have a mean", 0), 0U)
        << refusal(plan.dump());
  }
  schedule = {{"kind", "burst"}, {"messages", 0}};
  EXPECT_EQ(refusal(plan.dump()), "nodes[0].rules[0].schedule.messages: is 0, outside 1 … 1048576");
  schedule = {{"kind", "poisson"}, {"seed", 1}, {"messages", 2}};
  EXPECT_EQ(refusal(plan.dump()), "nodes[0].rules[0].schedule.messages: is not a key of a plan");
}

TEST(Plan, ReadsWorkAndContent) {
  json plan = valid_plan();
  json& work = plan["nodes"][0]["rules"][0]["work"];
  work = {{"kind", "normal"}, {"spread_ns", 7}, {"seed", 3}};
  plan["content"] = {{"kind", "recorded"}, {"path", "/file"}, {"crc32", 4294967295U}};
  Plan parsed = parse_plan(plan.dump());
  EXPECT_EQ(parsed.nodes[0].rules[0].work.kind, WorkKind::normal);
  EXPECT_EQ(parsed.nodes[0].rules[0].work.spread_ns, 7);
  EXPECT_EQ(parsed.nodes[0].rules[0].work.seed, 3U);
  EXPECT_EQ(parsed.content.kind, ContentKind::recorded);
  EXPECT_EQ(parsed.content.path, "/file");
  EXPECT_EQ(parsed.content.crc32, 4294967295U);
  work = {{"kind", "lognormal"}, {"sigma", 0.5}, {"seed", 3}};
  plan["content"] = {{"kind", "zeros"}};
  parsed = parse_plan(plan.dump());
  EXPECT_EQ(parsed.nodes[0].rules[0].work.sigma, 0.5);
  EXPECT_EQ(parsed.content.kind, ContentKind::zeros);
  work["sigma"] = "wide";
  EXPECT_EQ(refusal(plan.dump()), "nodes[0].rules[0].work.sigma: must be a number, not text");
}

}  // namespace
}  // namespace lagometer::engine
