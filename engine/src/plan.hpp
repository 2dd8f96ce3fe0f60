// SPDX-License-Identifier: Apache-2.0
// A worker's plan, typed. docs/PROTOCOL.md and schema/plan.schema.json describe its JSON form.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "content.hpp"
#include "schedule.hpp"
#include "work.hpp"

namespace lagometer::engine {

/// What is wrong with a plan, and where: "nodes[0].rules[1].period_ns: …".
class PlanError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Liveliness {
  bool manual = false;  ///< by topic; otherwise automatic
  int64_t lease_ns = 0;
};

struct Qos {
  std::optional<bool> reliable;
  std::optional<bool> keep_all;
  std::optional<uint32_t> depth;
  std::optional<bool> transient_local;
  std::optional<int64_t> deadline_ns;
  std::optional<int64_t> lifespan_ns;
  std::optional<Liveliness> liveliness;
  std::string partition;   ///< empty: no partition
  uint32_t instances = 0;  ///< for a keyed topic; 0: it has no key
};

struct EndpointPlan {
  uint32_t context = 0;
  std::string topic;
  std::string type;
  uint64_t payload_bytes = 0;
  uint64_t capacity = 0;
  Qos qos;
};

struct ReaderPlan : EndpointPlan {
  std::vector<uint32_t> streams;
  bool sizes_vary = false;    ///< messages may be smaller than payload_bytes
  bool shares_clock = false;  ///< all its publishers read the same clock as this worker
};

/// Which requests a writer of replies answers: those of this stream, which arrive on this reader of its node.
struct AnswersPlan {
  uint32_t reader = 0;
  uint32_t stream = 0;
};

struct WriterPlan : EndpointPlan {
  uint32_t stream = 0;
  uint32_t subscribers = 0;
  std::optional<ContentPlan> content;  ///< if absent, the plan's
  std::vector<uint32_t> sizes_bytes;   ///< size of message `sequence` modulo their number; empty: payload_bytes
  std::optional<uint32_t> replied_on;  ///< it sends requests: the reader of its node that gets the replies
  std::optional<AnswersPlan> answers;  ///< it sends replies
};

enum class Trigger { timer, any, all, closed_loop };

struct RulePlan {
  Trigger trigger = Trigger::any;
  int64_t period_ns = 0;
  int64_t offset_ns = 0;
  SchedulePlan schedule;
  int64_t timeout_ns = 0;
  uint64_t messages_max = 0;
  int64_t work_ns = 0;
  WorkPlan work;
  bool echo = false;
  std::vector<uint32_t> readers;
  std::vector<uint32_t> uses;  ///< readers whose newest message is a further cause but triggers nothing
  std::vector<uint32_t> writers;
};

enum class Dispatch { poll, waitset, listener };

struct NodePlan {
  std::string name;
  uint32_t index = 0;
  Dispatch dispatch = Dispatch::waitset;
  std::vector<int> cpus;
  std::vector<ReaderPlan> readers;
  std::vector<WriterPlan> writers;
  std::vector<RulePlan> rules;
};

struct AdapterPlan {
  std::string name;
  std::string library;
  std::string profile;
  std::string options;  ///< JSON text
  std::string network;  ///< JSON text
  std::vector<std::pair<std::string, std::string>> environment;
};

struct ContextPlan {
  uint32_t adapter = 0;
  uint32_t domain = 0;
  std::string name;
  std::string security;  ///< JSON text; empty: no security
};

struct SchedulingPlan {
  bool fifo = false;
  int priority = 0;
  std::vector<int> cpus;
  bool lock_memory = false;
};

struct TouchPlan {
  bool write = true;
  bool read = true;
};

struct Plan {
  std::string cell;
  uint32_t trial = 0;
  bool standalone = false;
  uint32_t worker = 0;
  std::string worker_name;
  uint32_t host_number = 0;  ///< number of its host among the trial's
  int64_t discovery_timeout_ns = 0;
  int64_t warmup_ns = 0;
  int64_t measure_ns = 0;
  int64_t drain_ns = 0;
  SchedulingPlan scheduling;
  std::string runtime_directory;
  TouchPlan touch;
  ContentPlan content;
  bool one_thread = false;         ///< one thread serves all nodes, which then have the same dispatch and CPUs
  bool matching = true;            ///< it probes, and waits until everything that its readers expect is heard
  bool layer_stamps = false;       ///< requests stamps of the middleware's layers from the adapters
  uint32_t heap_offset_bytes = 0;  ///< a multiple of 16, smaller than a page
  std::vector<AdapterPlan> adapters;
  std::vector<ContextPlan> contexts;
  std::vector<NodePlan> nodes;
};

/// Checks how its nodes fit together. Throws PlanError.
void check_together(const Plan& plan);

/// Throws PlanError.
Plan parse_plan(std::string_view text);

}  // namespace lagometer::engine
