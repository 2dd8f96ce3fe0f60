// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

namespace lagometer::engine {

namespace {

using nlohmann::json;

// Entering and leaving two layers on each side.
constexpr uint64_t kStampsPerMessage = 4;

}  // namespace

Session::Session(const Plan& plan, int records_descriptor) : plan_(plan) {
  try {
    std::error_code problem;
    std::filesystem::create_directories(plan_.runtime_directory, problem);
    if (problem)
      throw AdapterError("can't make runtime_directory " + plan_.runtime_directory + ": " + problem.message());
    stage_.warmup_ns = plan_.warmup_ns;
    load_adapters();
    create_contexts();
    share_executor();
    for (const NodePlan& node : plan_.nodes) create_node(node);
    create_loops();
    create_recorder(records_descriptor);
    enabled_ns_ = now_ns();
    enable_all();
    for (Loop& loop : loops_) loop.start();
  } catch (...) {
    stop();
    std::for_each(deleters_.rbegin(), deleters_.rend(), [](const Deleter& destroy) { destroy(); });
    throw;
  }
}

Session::~Session() {
  stop();
  const InCall in_call;
  std::for_each(deleters_.rbegin(), deleters_.rend(), [](const Deleter& destroy) { destroy(); });
}

json Session::parsed(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

void Session::load_adapters() {
  for (const AdapterPlan& adapter : plan_.adapters) {
    for (const auto& [name, value] : adapter.environment) setenv(name.c_str(), value.c_str(), 1);
  }
  for (const AdapterPlan& adapter : plan_.adapters) {
    adapters_.emplace_back(adapter.library);
    probed_.push_back(parsed(adapters_.back().probe(adapter.options)));
    abilities_.push_back(probed_.back().is_object() ? probed_.back().value("abilities", json()) : json());
  }
}

void Session::create_contexts() {
  for (uint32_t index = 0; index < plan_.contexts.size(); ++index) {
    const ContextPlan& context = plan_.contexts[index];
    const AdapterPlan& adapter = plan_.adapters[context.adapter];
    const lagometer_adapter_table& table = adapter_of(index).table();
    lagometer_context_config config{};
    config.size = sizeof config;
    config.abi_version = LAGOMETER_ABI_VERSION;
    config.domain = context.domain;
    config.name = to_c(context.name);
    config.profile = to_c(adapter.profile);
    config.options = to_c(adapter.options);
    config.runtime_directory = to_c(plan_.runtime_directory);
    config.network = to_c(adapter.network);
    config.security = to_c(context.security);
    lagometer_context* handle = nullptr;
    check("context_create", [&] { return table.context_create(&config, &handle); });
    deleters_.emplace_back([&table, handle] { table.context_destroy(handle); });
    contexts_.push_back(handle);
    check("context_enable", [&] { return table.context_enable(handle); });
  }
}

lagometer_node* Session::node_in(uint32_t context, const std::string& name) {
  const std::pair<uint32_t, std::string> key{context, name};
  for (const auto& [known, handle] : node_handles_) {
    if (known == key) return handle;
  }
  const lagometer_adapter_table& table = adapter_of(context).table();
  lagometer_node* handle = nullptr;
  check("node_create", [&] { return table.node_create(contexts_[context], to_c(name), &handle); });
  deleters_.emplace_back([&table, handle] { table.node_destroy(handle); });
  node_handles_.emplace_back(key, handle);
  return handle;
}

void Session::create_recorder(int descriptor) {
  std::vector<LaneSpecification> lanes;
  const auto add_shared = [&](const EndpointUser& user, LaneKind stamps, LaneKind events, uint32_t node,
                              uint32_t endpoint, uint64_t capacity) {
    if (user.stamped) lanes.push_back({stamps, node, endpoint, capacity * kStampsPerMessage});
    if (user.events.offered()) lanes.push_back({events, node, endpoint, EndpointEvents::kCapacity});
  };
  auto writer = writer_users_.begin();
  for (Node& node : nodes_) {
    const NodePlan& plan = node.plan();
    size_t causes_max = 0;
    for (const RulePlan& rule : plan.rules) causes_max = std::max(causes_max, rule.readers.size() + rule.uses.size());
    for (const Output& output : node.outputs) {
      lanes.push_back({LaneKind::sent, plan.index, output.plan().stream, output.plan().capacity});
      lanes.push_back({LaneKind::causes, plan.index, output.plan().stream,
                       causes_max > 1 ? output.plan().capacity * causes_max : 0});
      add_shared(**writer++, LaneKind::sent_stamps, LaneKind::sent_events, plan.index, output.plan().stream,
                 output.plan().capacity);
    }
    for (uint32_t reader = 0; reader < node.inputs.size(); ++reader) {
      lanes.push_back({LaneKind::received, plan.index, reader, node.inputs[reader].plan().capacity});
      add_shared(user_of(node.inputs[reader]), LaneKind::received_stamps, LaneKind::received_events, plan.index, reader,
                 node.inputs[reader].plan().capacity);
    }
  }
  recorder_ = std::make_unique<Recorder>(plan_.worker, lanes, descriptor, plan_.host_number);
  size_t lane = 0;
  auto writer_user = writer_users_.begin();
  for (Node& node : nodes_) {
    for (Output& output : node.outputs) {
      output.record_into(recorder_->sent(lane), recorder_->causes(lane + 1));
      lane += 2;
      EndpointUser& user = **writer_user++;
      if (user.stamped) {
        output.stamp_into(recorder_->stamps(lane));
        user.record_into(recorder_->stamps(lane++), output.plan().stream);
      }
      if (user.events.offered()) user.events.record_into(recorder_->events(lane++));
    }
    for (Input& input : node.inputs) {
      input.record_into(recorder_->received(lane++));
      EndpointUser& user = user_of(input);
      if (user.stamped) {
        input.stamp_into(recorder_->stamps(lane));
        user.record_into(recorder_->stamps(lane++));
      }
      if (user.events.offered()) user.events.record_into(recorder_->events(lane++));
    }
  }
}

void Session::enable_all() {
  for (Node& node : nodes_) {
    for (const Input& input : node.inputs)
      check("reader_enable", [&] { return input.table().reader_enable(input.handle()); });
    for (const Output& output : node.outputs) {
      if (!output.shares_writer())
        check("writer_enable", [&] { return output.table().writer_enable(output.handle()); });
    }
  }
  stage_.enabled.store(true, std::memory_order_release);
}

EndpointUser& Session::user_of(const Input& input) const {
  const auto found = std::find_if(callbacks_.begin(), callbacks_.end(),
                                  [&](const auto& callback) { return callback->input == &input; });
  return **found;
}

bool Session::look_for_readers(bool probing) {
  const InCall in_call;
  bool anyone_new = false;
  for (Node& node : nodes_) {
    for (Output& output : node.outputs) {
      anyone_new = output.meets_another() || anyone_new;
      if (!probing || output.plan().answers) continue;  // replies are only sent to requests
      const std::lock_guard lock(stage_.probing);
      output.send_probe();
    }
  }
  return anyone_new;
}

json Session::missing() const {
  json result = json::array();
  for (const Node& node : nodes_) {
    for (size_t reader = 0; reader < node.inputs.size(); ++reader) {
      const std::vector<uint32_t> streams = node.inputs[reader].missing();
      if (streams.empty()) continue;
      result.push_back({{"node", node.plan().name},
                        {"reader", reader},
                        {"topic", node.inputs[reader].plan().topic},
                        {"streams", streams}});
    }
  }
  return result;
}

namespace {

std::string written(std::optional<int64_t> time_ns) { return time_ns ? std::to_string(*time_ns) + " ns" : "none"; }

/// Adds which policy is incompatible, and this side's setting of it.
void name_policy(json& event, uint32_t policy, const Qos& qos) {
  const auto put = [&](const char* name, const std::string& value) {
    event["policy"] = name;
    event["value"] = value;
  };
  const auto word = [](std::optional<bool> is, const char* yes, const char* no) {
    return !is ? "the vendor's default" : *is ? yes : no;
  };
  if (policy == LAGOMETER_POLICY_RELIABILITY) put("reliability", word(qos.reliable, "reliable", "best_effort"));
  if (policy == LAGOMETER_POLICY_DURABILITY)
    put("durability", word(qos.transient_local, "transient_local", "volatile"));
  if (policy == LAGOMETER_POLICY_DEADLINE) put("deadline", written(qos.deadline_ns));
  if (policy == LAGOMETER_POLICY_LIVELINESS) {
    const char* kind = qos.liveliness && qos.liveliness->manual ? "manual " : "automatic ";
    put("liveliness", qos.liveliness ? kind + written(qos.liveliness->lease_ns) : "none");
  }
}

}  // namespace

template <typename Visit>
void Session::for_each_endpoint(Visit visit) {
  auto writer = writer_users_.begin();
  for (Node& node : nodes_) {
    for (const Output& output : node.outputs) visit(node, "writer", output.plan(), **writer++);
    for (const Input& input : node.inputs) visit(node, "reader", input.plan(), user_of(input));
  }
}

json Session::newly_incompatible() {
  json result = json::array();
  for_each_endpoint([&](const Node& node, const char* side, const EndpointPlan& plan, const EndpointUser& user) {
    const uint64_t total = user.events.total(LAGOMETER_EVENT_INCOMPATIBLE_QOS);
    if (total == 0 || std::find(incompatible_.begin(), incompatible_.end(), &user) != incompatible_.end()) return;
    incompatible_.push_back(&user);
    json event{{"node", node.plan().name}, {"side", side}, {"topic", plan.topic}, {"total", total}};
    name_policy(event, user.policy(), plan.qos);
    result.push_back(std::move(event));
  });
  return result;
}

void Session::start(int64_t at_ns, int64_t source_stop_ns) {
  stage_.source_stop_ns.store(source_stop_ns, std::memory_order_relaxed);
  stage_.start_ns.store(at_ns, std::memory_order_release);
  for (Node& node : nodes_) node.begin_by_timer();
  for (Loop& loop : loops_) loop.wake();
}

// Sequentially consistent here and in stop(): either this callback sees that everything is over, or stop() sees this
// callback.
void Session::Callback::called() noexcept {
  const InCall in_call;
  running.fetch_add(1, std::memory_order_seq_cst);
  if (!stage.stopped.load(std::memory_order_seq_cst)) input != nullptr ? node.on_data(*input) : node.on_timer();
  running.fetch_sub(1, std::memory_order_release);
}

void Session::stop() {
  if (stopped_) return;
  stopped_ = true;
  stage_.stopped.store(true, std::memory_order_seq_cst);
  for (Loop& loop : loops_) loop.wake();
  for (Loop& loop : loops_) loop.join();
  // The code below reads what callbacks write.
  constexpr timespec kGlance = {.tv_sec = 0, .tv_nsec = 20'000};
  for (const auto& callback : callbacks_) {
    while (callback->running.load(std::memory_order_acquire) != 0)
      clock_nanosleep(CLOCK_MONOTONIC, 0, &kGlance, nullptr);
  }
}

std::string Session::failure() const {
  const std::string own = failure_.text();
  return own.empty() ? abi_host::broken_reason() : own;
}

}  // namespace lagometer::engine
