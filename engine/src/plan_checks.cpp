// SPDX-License-Identifier: Apache-2.0
// Checks that concern more than one part of a plan.
#include <set>
#include <string>

#include "plan.hpp"

namespace lagometer::engine {

namespace {

[[noreturn]] void refuse_at(const std::string& place, const std::string& what) { throw PlanError(place + ": " + what); }

// These numbers distinguish records: with two alike, one message would be taken for another.
void refuse_twins(const Plan& plan) {
  std::set<uint32_t> indices_seen;
  std::set<uint32_t> streams_seen;
  for (size_t at = 0; at < plan.nodes.size(); ++at) {
    const NodePlan& node = plan.nodes[at];
    const std::string path = "nodes[" + std::to_string(at) + "]";
    if (!indices_seen.insert(node.index).second)
      refuse_at(path + ".index", "another node has " + std::to_string(node.index) + " too");
    for (size_t writer = 0; writer < node.writers.size(); ++writer) {
      const uint32_t stream = node.writers[writer].stream;
      if (streams_seen.insert(stream).second) continue;
      refuse_at(path + ".writers[" + std::to_string(writer) + "].stream",
                "another writer has " + std::to_string(stream) + " too");
    }
  }
}

// Nodes that share one thread must have the same dispatch and CPUs.
void refuse_unlike(const Plan& plan) {
  const NodePlan& first = plan.nodes.front();
  for (size_t at = 1; at < plan.nodes.size(); ++at) {
    const std::string path = "nodes[" + std::to_string(at) + "]";
    const char* const what = "differs from that of nodes[0], which is served by the same thread";
    if (plan.nodes[at].dispatch != first.dispatch) refuse_at(path + ".dispatch", what);
    if (plan.nodes[at].cpus != first.cpus) refuse_at(path + ".cpus", what);
  }
}

}  // namespace

void check_together(const Plan& plan) {
  refuse_twins(plan);
  if (plan.one_thread) refuse_unlike(plan);
}

}  // namespace lagometer::engine
