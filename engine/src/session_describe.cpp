// SPDX-License-Identifier: Apache-2.0
// What a session reports about itself: its adapters, their effective settings, the results of writers and readers.
#include <utility>

#include "session.hpp"

namespace lagometer::engine {

namespace {

using nlohmann::json;

json counters_of(const lagometer_counters& counters) {
  json result = json::object();
  const std::pair<uint64_t, std::pair<const char*, uint64_t>> all[] = {
      {LAGOMETER_COUNTER_LOST, {"lost", counters.lost}},
      {LAGOMETER_COUNTER_REJECTED, {"rejected", counters.rejected}},
      {LAGOMETER_COUNTER_OVERWRITTEN, {"overwritten", counters.overwritten}},
      {LAGOMETER_COUNTER_DEADLINE, {"deadline_missed", counters.deadline_missed}},
      {LAGOMETER_COUNTER_RESENT, {"resent", counters.resent}}};
  for (const auto& [bit, entry] : all) {
    if ((counters.present & bit) != 0) result[entry.first] = entry.second;
  }
  return result;
}

const char* origin_name(uint32_t origin) {
  static constexpr const char* kOrigins[] = {"none", "loaned", "native", "copied"};
  return kOrigins[origin < 4 ? origin : 0];
}

}  // namespace

json Session::describe_adapters() const {
  json result = json::array();
  for (size_t index = 0; index < adapters_.size(); ++index) {
    const json& probed = probed_[index];
    result.push_back({{"name", plan_.adapters[index].name},
                      {"version", adapters_[index].table().abi_version},
                      {"library_version", probed.is_object() ? probed.value("version", json()) : json()},
                      {"abilities", abilities_[index]}});
  }
  return result;
}

json Session::describe_settings() const {
  json result = json::array();
  for (uint32_t index = 0; index < contexts_.size(); ++index) {
    result.push_back({{"adapter", plan_.adapters[plan_.contexts[index].adapter].name},
                      {"object", "context"},
                      {"effective", parsed(adapter_of(index).describe(LAGOMETER_OBJECT_CONTEXT, contexts_[index]))}});
  }
  const auto add = [&](const EndpointPlan& endpoint, const char* what, uint32_t kind, const void* handle) {
    result.push_back({{"adapter", plan_.adapters[plan_.contexts[endpoint.context].adapter].name},
                      {"object", what + endpoint.topic},
                      {"effective", parsed(adapter_of(endpoint.context).describe(kind, handle))}});
  };
  for (const Node& node : nodes_) {
    for (const Output& output : node.outputs) add(output.plan(), "writer ", LAGOMETER_OBJECT_WRITER, output.handle());
    for (const Input& input : node.inputs) add(input.plan(), "reader ", LAGOMETER_OBJECT_READER, input.handle());
  }
  return result;
}

json Session::describe_writers() const {
  json result = json::array();
  auto user = writer_users_.begin();
  for (const Node& node : nodes_) {
    for (uint32_t index = 0; index < node.outputs.size(); ++index) {
      const Output& output = node.outputs[index];
      lagometer_counters counters{};
      counters.size = sizeof counters;
      counters.abi_version = LAGOMETER_ABI_VERSION;
      if (!output.shares_writer())
        check("writer_counters", [&] { return output.table().writer_counters(output.handle(), &counters); });
      json& said = result.emplace_back();
      said = json({{"node", node.plan().index},
                   {"stream", output.plan().stream},
                   {"sent", output.sent()},
                   {"rejected", output.rejected()},
                   {"resent_after_timeout", node.resent(index)},
                   {"recorder_full", output.recorder_full()},
                   {"origin", origin_name(output.origin())},
                   {"counters", counters_of(counters)},
                   {"events", (*user++)->events.describe()}});
      if (const auto kept = node.punctuality(index, plan_.warmup_ns, plan_.warmup_ns + plan_.measure_ns)) {
        said["due"] = kept->due;
        said["skipped"] = kept->skipped;
        said["shift_ns"] = kept->shift_ns;
      }
    }
  }
  return result;
}

json Session::describe_readers() const {
  json result = json::array();
  for (const Node& node : nodes_) {
    for (uint32_t index = 0; index < node.inputs.size(); ++index) {
      const Input& input = node.inputs[index];
      lagometer_counters counters{};
      counters.size = sizeof counters;
      counters.abi_version = LAGOMETER_ABI_VERSION;
      check("reader_counters", [&] { return input.table().reader_counters(input.handle(), &counters); });
      result.push_back({{"node", node.plan().index},
                        {"reader", index},
                        {"received", input.received()},
                        {"corrupted", input.corrupted()},
                        {"recorder_full", input.recorder_full()},
                        {"counters", counters_of(counters)},
                        {"events", user_of(input).events.describe()}});
    }
  }
  return result;
}

std::vector<std::string> Session::warnings() const {
  std::vector<std::string> result = warnings_;
  for (const Node& node : nodes_) {
    if (node.ended_early()) {
      result.push_back("the closed loop of node " + node.plan().name + " ended early, after " +
                       std::to_string(node.outputs.front().sent()) + " messages: no room for more records");
    }
  }
  return result;
}

}  // namespace lagometer::engine
