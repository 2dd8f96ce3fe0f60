// SPDX-License-Identifier: Apache-2.0
// Whatever is wrong with a plan is named with its JSON path.
#include "plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
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

struct Damage {
  const char* pointer;  // where a value is put
  const char* value;    // JSON
  const char* path;     // what the message must begin with
  const char* words;    // and hold
};

/// What a failing test prints of its case, instead of the bytes of four pointers.
void PrintTo(const Damage& damage, std::ostream* stream) { *stream << damage.pointer << " = " << damage.value; }

/// The case's name: its place in the list, and the pointer in the characters that a name may have.
std::string damage_name(const testing::TestParamInfo<Damage>& information) {
  std::string name = std::to_string(information.index) + "_" + (information.param.pointer + 1);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

class Damaged : public testing::TestWithParam<Damage> {};

TEST_P(Damaged, IsRefusedWithItsPath) {
  json plan = valid_plan();
  plan[Pointer(GetParam().pointer)] = json::parse(GetParam().value);
  const std::string text = refusal(plan.dump());
  EXPECT_EQ(text.rfind(std::string(GetParam().path) + ": ", 0), 0U) << text;
  EXPECT_NE(text.find(GetParam().words), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(
    Plan, Damaged,
    testing::Values(
        Damage{"/protocol", "2", "protocol", "2"}, Damage{"/unheard", "1", "unheard", "not a key"},
        Damage{"/cell", "7", "cell", "must be text"}, Damage{"/cell", "\"a\\u0000b\"", "cell", "zero byte"},
        Damage{"/trial", "-1", "trial", "outside"}, Damage{"/trial", "1.5", "trial", "whole number"},
        Damage{"/trial", "18446744073709551615", "trial", "outside"}, Damage{"/trial", "true", "trial", "whole number"},
        Damage{"/standalone", "1", "standalone", "true or false"}, Damage{"/worker", "[]", "worker", "an object"},
        Damage{"/worker/name", "\"\"", "worker.name", "empty"},
        Damage{"/worker/color", "1", "worker.color", "not a key"},
        Damage{"/phases/measure_ns", "0", "phases.measure_ns", "outside"},
        Damage{"/phases/measure_ns", "1e9", "phases.measure_ns", "whole number"},
        Damage{"/phases/warmup_ns", "-1", "phases.warmup_ns", "outside"},
        Damage{"/phases/drain_ns", "9223372036854775807", "phases.drain_ns", "outside"},
        Damage{"/scheduling/policy", "\"rr\"", "scheduling.policy", "other | fifo"},
        Damage{"/scheduling/policy", "\"fifo\"", "scheduling.priority", "FIFO needs"},
        Damage{"/scheduling/cpus", "[0,1024]", "scheduling.cpus[1]", "outside"},
        Damage{"/scheduling/lock_memory", "null", "scheduling.lock_memory", "true or false"},
        Damage{"/heap_offset_bytes", "4096", "heap_offset_bytes", "outside"},
        Damage{"/heap_offset_bytes", "24", "heap_offset_bytes", "no multiple of 16"},
        Damage{"/runtime_directory", "\"\"", "runtime_directory", "empty"},
        Damage{"/touch", "\"all\"", "touch", "write+read"}, Damage{"/adapters", "{}", "adapters", "a list"},
        Damage{"/adapters", "[]", "adapters", "empty"}, Damage{"/contexts", "[]", "contexts", "empty"},
        Damage{"/adapters/0/library", "\"\"", "adapters[0].library", "empty"},
        Damage{"/adapters/0/options", "\"{}\"", "adapters[0].options", "an object"},
        Damage{"/adapters/0/environment/A=B", "\"c\"", "adapters[0].environment.A=B", "no name"},
        Damage{"/adapters/0/environment/A", "1", "adapters[0].environment.A", "must be text"},
        Damage{"/adapters/0/profile", "\"fast\"", "adapters[0].profile", "default | matched"},
        Damage{"/contexts/0/adapter", "1", "contexts[0].adapter", "outside"},
        Damage{"/contexts/0/domain", "4294967296", "contexts[0].domain", "outside"},
        Damage{"/nodes", "[]", "nodes", "empty"}, Damage{"/nodes/1", "null", "nodes[1]", "an object"},
        Damage{"/nodes/1/dispatch", "\"push\"", "nodes[1].dispatch", "poll | waitset | listener"},
        Damage{"/nodes/1/readers/0/context", "1", "nodes[1].readers[0].context", "outside"},
        Damage{"/nodes/1/readers/0/topic", "\"\"", "nodes[1].readers[0].topic", "empty"},
        Damage{"/nodes/1/readers/0/type", "\"text\"", "nodes[1].readers[0].type", "bytes | fixed | string"},
        Damage{"/nodes/1/readers/0/type", "\"Imu\"", "nodes[1].readers[0].payload_bytes", "128, a size that the type"},
        Damage{"/nodes/1/readers/0/payload_bytes", "15", "nodes[1].readers[0].payload_bytes", "outside"},
        Damage{"/nodes/1/readers/0/capacity", "0", "nodes[1].readers[0].capacity", "outside"},
        Damage{"/nodes/1/readers/0/streams/0", "\"0\"", "nodes[1].readers[0].streams[0]", "whole number"},
        Damage{"/nodes/1/readers/0/qos/depth", "0", "nodes[1].readers[0].qos.depth", "outside"},
        Damage{"/nodes/1/readers/0/qos/history", "\"all\"", "nodes[1].readers[0].qos.history", "keep_last | keep_all"},
        Damage{"/nodes/1/readers/0/qos/reliable", "true", "nodes[1].readers[0].qos.reliable", "not a key"},
        Damage{"/nodes/1/index", "0", "nodes[1].index", "another node"},
        Damage{"/nodes/3/writers/0/stream", "1", "nodes[3].writers[0].stream", "another writer"},
        Damage{"/nodes/0/rules/0/trigger", "\"never\"", "nodes[0].rules[0].trigger", "closed_loop"},
        Damage{"/nodes/0/rules/0/period_ns", "999", "nodes[0].rules[0].period_ns", "outside"},
        Damage{"/nodes/0/rules/0/writers", "[1]", "nodes[0].rules[0].writers[0]", "outside"},
        Damage{"/nodes/0/rules/0/readers", "[0]", "nodes[0].rules[0].readers[0]", "empty list"},
        Damage{"/nodes/0/rules/0/echo", "true", "nodes[0].rules[0].echo", "any alone"},
        Damage{"/nodes/1/rules/0/readers", "[]", "nodes[1].rules[0].readers", "only a timer"},
        Damage{"/nodes/1/rules/0/readers", "[0,0]", "nodes[1].rules[0].readers[1]", "listed twice"},
        Damage{"/nodes/1/rules/0/period_ns", "5000", "nodes[1].rules[0].period_ns", "not a key"},
        Damage{"/nodes/3/rules/0/writers", "[]", "nodes[3].rules[0].writers", "closed loop sends"},
        Damage{"/nodes/3/rules/0/timeout_ns", "0", "nodes[3].rules[0].timeout_ns", "outside"},
        Damage{"/nodes/3/rules/0/messages_max", "-1", "nodes[3].rules[0].messages_max", "outside"}),
    damage_name);

TEST(Plan, HasASizeThatItsTypeHas) {
  const auto found = [](const char* type, uint64_t bytes) {
    json plan = valid_plan();
    plan["nodes"][0]["writers"][0]["type"] = type;
    plan["nodes"][0]["writers"][0]["payload_bytes"] = bytes;
    return refusal(plan.dump());
  };
  const std::string refused = "nodes[0].writers[0].payload_bytes: is ";
  EXPECT_EQ(found("string", 31).find(refused), 0U);
  EXPECT_EQ(found("string", 32), "(accepted)");
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
  EXPECT_EQ(refusal("[]"), "plan: must be an object, not array");
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
  for (const auto& intervals : {json::array(), json{0, 0}, json{0, 10}}) {
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
  EXPECT_EQ(refusal(plan.dump()), "nodes[0].rules[0].work.sigma: must be a number, not string");
}

}  // namespace
}  // namespace lagometer::engine
