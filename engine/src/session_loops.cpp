// SPDX-License-Identifier: Apache-2.0
// Which threads serve a session's nodes: one each or one for all, what they wait on, and adapters' executors.
#include <algorithm>

#include "loading.hpp"
#include "session.hpp"

namespace lagometer::engine {

namespace {

using nlohmann::json;

/// The nodes that can't be served, as the beginning of a sentence.
std::string named(const std::vector<Node*>& nodes) {
  return nodes.size() == 1 ? "node " + nodes.front()->plan().name : "one thread for all nodes (threads per-process)";
}

/// What would work instead; a listener is no alternative if one thread is requested.
std::string instead(const std::vector<Node*>& nodes) {
  return nodes.size() == 1 ? "; use poll or listener" : "; use poll, or a thread for each node (threads per-node)";
}

bool fires_by_time(const NodePlan& node) {
  return std::any_of(node.rules.begin(), node.rules.end(), [](const RulePlan& rule) {
    return rule.trigger == Trigger::timer || rule.trigger == Trigger::closed_loop;
  });
}

}  // namespace

void Session::create_loops() {
  std::vector<std::vector<Node*>> served;
  for (Node& node : nodes_) {
    if (served.empty() || !plan_.one_thread) served.emplace_back();
    served.back().push_back(&node);
  }
  for (const std::vector<Node*>& nodes : served) create_waitset(loops_.emplace_back(nodes, stage_, failure_), nodes);
}

void Session::create_waitset(Loop& loop, const std::vector<Node*>& nodes) {
  std::vector<const Input*> readers;
  for (const Node* const node : nodes) {
    for (const Input& input : node->inputs) readers.push_back(&input);
  }
  if (nodes.front()->plan().dispatch != Dispatch::waitset || readers.empty()) return;
  const uint32_t context = readers.front()->plan().context;
  const lagometer_adapter_table& table = adapter_of(context).table();
  if (table.waitset_create == nullptr)
    throw AdapterError(adapter_of(context).name() + " has no waitset; use another dispatch");
  check_waitset_spans(nodes, readers);
  lagometer_waitset* waitset = nullptr;
  check("waitset_create", [&] { return table.waitset_create(contexts_[context], &waitset); });
  // Destroyed before the readers attached to it: deleters run backwards.
  deleters_.emplace_back([&table, waitset] { table.waitset_destroy(waitset); });
  for (const Input* const input : readers) {
    check("waitset_attach", [&] { return table.waitset_attach(waitset, input->handle()); });
  }
  loop.wait_on(waitset, table);
}

void Session::check_waitset_spans(const std::vector<Node*>& nodes, const std::vector<const Input*>& readers) const {
  const uint32_t first = readers.front()->plan().context;
  const uint32_t adapter = plan_.contexts[first].adapter;
  bool spans = false;
  for (const Input* const input : readers) {
    spans = spans || input->plan().context != first;
    if (plan_.contexts[input->plan().context].adapter != adapter)
      throw AdapterError(named(nodes) + ": one waitset can't wait for readers of two adapters" + instead(nodes));
  }
  if (!spans) return;
  const json& abilities = abilities_[adapter];
  if (!abilities.is_object() || abilities.value("waitset_contexts", json(false)) != json(true))
    throw AdapterError(named(nodes) + ": a waitset of " + adapters_[adapter].name() +
                       " can't wait for readers of several contexts (waitset_contexts)" + instead(nodes));
}

const lagometer_executor_table* Session::executor_of(uint32_t context) const {
  const Adapter& adapter = adapter_of(context);
  const auto* const table = static_cast<const lagometer_executor_table*>(
      adapter.table().extension(LAGOMETER_OBJECT_CONTEXT, contexts_[context], to_c(LAGOMETER_EXECUTOR_EXTENSION)));
  if (table == nullptr) return nullptr;
  if (!abi_host::is_callable(*table, LAGOMETER_EXECUTOR_TABLE_SIZE_1_0))
    throw AdapterError(adapter.name() + ": its executors are of another version of the interface");
  return table;
}

std::vector<uint32_t> Session::calling_contexts() const {
  std::vector<uint32_t> found;
  const auto add = [&found](uint32_t context) {
    if (std::find(found.begin(), found.end(), context) == found.end()) found.push_back(context);
  };
  for (const NodePlan& node : plan_.nodes) {
    for (const ReaderPlan& reader : node.readers) {
      if (executor_of(reader.context) == nullptr)
        throw AdapterError(adapter_of(reader.context).name() +
                           " calls back on its own threads, so one thread can't serve all nodes (threads per-process); "
                           "use waitset or poll");
      add(reader.context);
    }
    const bool timed = !node.writers.empty() && fires_by_time(node);
    if (timed && executor_of(node.writers.front().context) != nullptr) add(node.writers.front().context);
  }
  return found;
}

void Session::share_executor() {
  if (!plan_.one_thread || plan_.nodes.front().dispatch != Dispatch::listener) return;
  const std::vector<uint32_t> contexts = calling_contexts();
  if (contexts.empty()) return;
  if (contexts.size() > 1)
    throw AdapterError("one executor can't serve the nodes of " + std::to_string(contexts.size()) +
                       " contexts (threads per-process); use waitset or poll, or one participant and one domain");
  check("sharing an executor", [&] { return executor_of(contexts.front())->share(contexts_[contexts.front()]); });
}

void Session::create_timer(Node& node) {
  if (node.outputs.empty()) return;
  const uint32_t context = node.outputs.front().plan().context;
  lagometer_node* const parent = node_in(context, node.plan().name);
  const lagometer_string name = to_c(LAGOMETER_TIMERS_EXTENSION);
  const auto* table = static_cast<const lagometer_timers_table*>(
      adapter_of(context).table().extension(LAGOMETER_OBJECT_NODE, parent, name));
  if (table == nullptr) return;
  if (!abi_host::is_callable(*table, LAGOMETER_TIMERS_TABLE_SIZE_1_0))
    throw AdapterError(adapter_of(context).name() + ": its timers are of another version of the interface");
  callbacks_.push_back(std::make_unique<Callback>(stage_, node, nullptr));
  lagometer_timer* timer = nullptr;
  const auto called = [](void* user) { static_cast<Callback*>(user)->called(); };
  check("a timer", [&] { return table->create(parent, called, callbacks_.back().get(), &timer); });
  // Destroyed before the writers it sends on: deleters run backwards.
  deleters_.emplace_back([table, timer] { table->destroy(timer); });
  node.keep_time_by(*table, timer);
}

}  // namespace lagometer::engine
