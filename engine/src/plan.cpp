// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "heap_offset.hpp"
#include "payload_type.hpp"

namespace lagometer::engine {

namespace {

using Json = nlohmann::json;

// Bounds that no real trial meets, so that a damaged plan is refused instead of carried out for a year.
constexpr int64_t kHour_ns = 3'600'000'000'000;
constexpr uint64_t kPayloadBytesMax = uint64_t{1} << 30;
constexpr uint64_t kCapacityMax = uint64_t{1} << 26;
constexpr uint64_t kItemsMax = 4096;
constexpr uint64_t kIntervalsMax = uint64_t{1} << 20;
constexpr int64_t kPeriodMin_ns = 1000;
constexpr int kDepthMax = 32;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw PlanError((path.empty() ? std::string("plan") : path) + ": " + what);
}

/// One JSON object, read key by key; finish() refuses what nobody asked for.
class Object {
 public:
  Object(const Json& value, std::string path) : value_(value), path_(std::move(path)) {
    if (!value.is_object()) refuse(path_, std::string("must be an object, not ") + value.type_name());
  }

  [[nodiscard]] std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  bool has(const char* key) { return value_.contains(key); }

  const Json& at(const char* key) {
    known_.insert(key);
    const auto found = value_.find(key);
    if (found == value_.end()) refuse(path_of(key), "is missing");
    return *found;
  }
  std::string text(const char* key) {
    const Json& value = at(key);
    if (!value.is_string()) refuse(path_of(key), std::string("must be text, not ") + value.type_name());
    std::string result = value.get<std::string>();
    if (result.size() > 4096) refuse(path_of(key), "is longer than 4096 bytes");
    if (result.find('\0') != std::string::npos) refuse(path_of(key), "holds a zero byte");
    return result;
  }
  std::string filled_text(const char* key) {
    std::string result = text(key);
    if (result.empty()) refuse(path_of(key), "is empty");
    return result;
  }
  bool boolean(const char* key) {
    const Json& value = at(key);
    if (!value.is_boolean()) refuse(path_of(key), std::string("must be true or false, not ") + value.type_name());
    return value.get<bool>();
  }
  template <typename Integer>
  Integer integer(const char* key, Integer low, Integer high) {
    return integer_of<Integer>(at(key), path_of(key), low, high);
  }
  template <typename Integer>
  static Integer integer_of(const Json& value, const std::string& path, Integer low, Integer high) {
    if (!value.is_number_integer()) refuse(path, std::string("must be a whole number, not ") + value.type_name());
    const bool positive = value.is_number_unsigned();
    const bool fits =
        positive ? std::in_range<Integer>(value.get<uint64_t>()) : std::in_range<Integer>(value.get<int64_t>());
    if (fits) {
      const auto number =
          positive ? static_cast<Integer>(value.get<uint64_t>()) : static_cast<Integer>(value.get<int64_t>());
      if (number >= low && number <= high) return number;
    }
    refuse(path, "is " + value.dump() + ", outside " + std::to_string(low) + " … " + std::to_string(high));
  }
  double number(const char* key, double low, double high) {
    const Json& value = at(key);
    if (!value.is_number()) refuse(path_of(key), std::string("must be a number, not ") + value.type_name());
    const auto result = value.get<double>();
    if (result >= low && result <= high) return result;
    refuse(path_of(key), "is " + value.dump() + ", outside " + std::to_string(low) + " … " + std::to_string(high));
  }
  size_t word(const char* key, std::initializer_list<const char*> words) {
    const std::string value = text(key);
    std::string all;
    size_t index = 0;
    for (const char* candidate : words) {
      if (value == candidate) return index;
      all += std::string(index++ == 0 ? "" : " | ") + candidate;
    }
    refuse(path_of(key), "is '" + value + "', must be " + all);
  }
  template <typename Function>
  void each(const char* key, Function&& function, uint64_t items_max = kItemsMax) {
    const Json& list = at(key);
    if (!list.is_array()) refuse(path_of(key), std::string("must be a list, not ") + list.type_name());
    if (list.size() > items_max) refuse(path_of(key), "has more than " + std::to_string(items_max) + " items");
    for (size_t index = 0; index < list.size(); ++index)
      function(list[index], path_of(key) + "[" + std::to_string(index) + "]");
  }
  template <typename Integer>
  std::vector<Integer> integers(const char* key, Integer low, Integer high) {
    std::vector<Integer> result;
    each(key, [&](const Json& item, const std::string& path) {
      result.push_back(integer_of<Integer>(item, path, low, high));
    });
    return result;
  }
  std::string object_text(const char* key) {
    const Json& value = at(key);
    if (!value.is_object()) refuse(path_of(key), std::string("must be an object, not ") + value.type_name());
    return value.dump();
  }
  void finish() const {
    for (const auto& [key, unused] : value_.items()) {
      if (!known_.contains(key)) refuse(path_of(key), "is not a key of a plan");
    }
  }

 private:
  const Json& value_;
  std::string path_;
  std::set<std::string> known_;
};

std::vector<uint32_t> indices(Object& object, const char* key, size_t size) {
  std::vector<uint32_t> result;
  object.each(key, [&](const Json& item, const std::string& path) {
    if (size == 0) refuse(path, "points at an empty list");
    result.push_back(Object::integer_of<uint32_t>(item, path, 0, static_cast<uint32_t>(size - 1)));
    if (std::count(result.begin(), result.end(), result.back()) > 1) refuse(path, "is listed twice");
  });
  return result;
}

Qos parse_qos(const Json& value, const std::string& path) {
  Object object(value, path);
  Qos qos;
  if (object.has("reliability")) qos.reliable = object.word("reliability", {"best_effort", "reliable"}) == 1;
  if (object.has("history")) qos.keep_all = object.word("history", {"keep_last", "keep_all"}) == 1;
  if (object.has("depth")) qos.depth = object.integer<uint32_t>("depth", 1, 1u << 20);
  if (object.has("durability")) qos.transient_local = object.word("durability", {"volatile", "transient_local"}) == 1;
  object.finish();
  return qos;
}

void parse_endpoint(Object& object, EndpointPlan& endpoint, size_t contexts) {
  endpoint.context = object.integer<uint32_t>("context", 0, static_cast<uint32_t>(contexts - 1));
  endpoint.topic = object.filled_text("topic");
  const PayloadType& type =
      kPayloadTypes[object.word("type", {"bytes", "fixed", "string", "Image", "Imu", "PointCloud2"})];
  endpoint.type = type.name;
  endpoint.payload_bytes = object.integer<uint64_t>("payload_bytes", 16, kPayloadBytesMax);
  if (!type.has_size(endpoint.payload_bytes))
    refuse(object.path_of("payload_bytes"), "is " + std::to_string(endpoint.payload_bytes) + ", a size that the type " +
                                                endpoint.type + " does not have");
  endpoint.capacity = object.integer<uint64_t>("capacity", 1, kCapacityMax);
  endpoint.qos = parse_qos(object.at("qos"), object.path_of("qos"));
}

std::shared_ptr<const std::vector<int64_t>> parse_intervals(Object& object) {
  auto intervals_ns = std::make_shared<std::vector<int64_t>>();
  int64_t sum_ns = 0;
  const auto note = [&](const Json& item, const std::string& path) {
    intervals_ns->push_back(Object::integer_of<int64_t>(item, path, 0, kHour_ns));
    sum_ns += intervals_ns->back();
  };
  object.each("intervals_ns", note, kIntervalsMax);
  const auto count = static_cast<int64_t>(intervals_ns->size());
  if (count == 0 || sum_ns / count < kPeriodMin_ns)
    refuse(object.path_of("intervals_ns"), "must have a mean of " + std::to_string(kPeriodMin_ns) + " ns or more");
  return intervals_ns;
}

SchedulePlan parse_schedule(const Json& value, const std::string& path) {
  Object object(value, path);
  SchedulePlan schedule;
  schedule.kind = static_cast<ScheduleKind>(object.word("kind", {"periodic", "poisson", "burst", "ramp", "recorded"}));
  if (object.has("late")) schedule.late = static_cast<LatePolicy>(object.word("late", {"burst", "skip", "shift"}));
  if (schedule.kind == ScheduleKind::poisson)
    schedule.seed = object.integer<uint64_t>("seed", 0, std::numeric_limits<uint64_t>::max());
  if (schedule.kind == ScheduleKind::burst) schedule.messages = object.integer<uint64_t>("messages", 1, 1u << 20);
  if (schedule.kind == ScheduleKind::ramp) {
    schedule.end_period_ns = object.integer<int64_t>("end_period_ns", kPeriodMin_ns, kHour_ns);
    schedule.begin_ns = object.integer<int64_t>("begin_ns", 0, kHour_ns);
    schedule.duration_ns = object.integer<int64_t>("duration_ns", 1, 24 * kHour_ns);
  }
  if (schedule.kind == ScheduleKind::recorded) schedule.intervals_ns = parse_intervals(object);
  object.finish();
  return schedule;
}

WorkPlan parse_work(const Json& value, const std::string& path) {
  Object object(value, path);
  WorkPlan work;
  work.kind = object.word("kind", {"normal", "lognormal"}) == 0 ? WorkKind::normal : WorkKind::lognormal;
  if (work.kind == WorkKind::normal) work.spread_ns = object.integer<int64_t>("spread_ns", 0, kHour_ns);
  if (work.kind == WorkKind::lognormal) work.sigma = object.number("sigma", 0.0, 10.0);
  work.seed = object.integer<uint64_t>("seed", 0, std::numeric_limits<uint64_t>::max());
  object.finish();
  return work;
}

ContentPlan parse_content(const Json& value, const std::string& path) {
  Object object(value, path);
  ContentPlan content;
  content.kind = static_cast<ContentKind>(object.word("kind", {"any", "zeros", "random", "recorded"}));
  if (content.kind == ContentKind::random)
    content.seed = object.integer<uint64_t>("seed", 0, std::numeric_limits<uint64_t>::max());
  if (content.kind == ContentKind::recorded) {
    content.path = object.filled_text("path");
    content.crc32 = object.integer<uint32_t>("crc32", 0, std::numeric_limits<uint32_t>::max());
  }
  object.finish();
  return content;
}

RulePlan parse_rule(const Json& value, const std::string& path, const NodePlan& node) {
  Object object(value, path);
  RulePlan rule;
  rule.trigger = static_cast<Trigger>(object.word("trigger", {"timer", "any", "all", "closed_loop"}));
  rule.readers = indices(object, "readers", node.readers.size());
  rule.writers = indices(object, "writers", node.writers.size());
  rule.work_ns = object.integer<int64_t>("work_ns", 0, kHour_ns);
  if (object.has("work")) rule.work = parse_work(object.at("work"), object.path_of("work"));
  if (rule.trigger == Trigger::timer) {
    rule.period_ns = object.integer<int64_t>("period_ns", kPeriodMin_ns, kHour_ns);
    rule.offset_ns = object.integer<int64_t>("offset_ns", 0, kHour_ns);
    if (object.has("schedule")) rule.schedule = parse_schedule(object.at("schedule"), object.path_of("schedule"));
  } else if (rule.readers.empty()) {
    refuse(object.path_of("readers"), "is empty: only a timer fires without a message");
  }
  if (rule.trigger == Trigger::closed_loop) {
    rule.timeout_ns = object.integer<int64_t>("timeout_ns", 1000, kHour_ns);
    rule.messages_max = object.integer<uint64_t>("messages_max", 0, uint64_t{std::numeric_limits<int64_t>::max()});
    if (rule.writers.empty()) refuse(object.path_of("writers"), "is empty: a closed loop sends");
  }
  if (object.has("echo")) rule.echo = object.boolean("echo");
  if (rule.echo && rule.trigger != Trigger::any) refuse(object.path_of("echo"), "goes with the trigger any alone");
  object.finish();
  return rule;
}

NodePlan parse_node(const Json& value, const std::string& path, size_t contexts) {
  Object object(value, path);
  NodePlan node;
  node.name = object.filled_text("name");
  node.index = object.integer<uint32_t>("index", 0, 1u << 20);
  node.dispatch = static_cast<Dispatch>(object.word("dispatch", {"poll", "waitset", "listener"}));
  node.cpus = object.integers<int>("cpus", 0, 1023);
  object.each("readers", [&](const Json& item, const std::string& item_path) {
    Object reader_object(item, item_path);
    ReaderPlan reader;
    parse_endpoint(reader_object, reader, contexts);
    reader.streams = reader_object.integers<uint32_t>("streams", 0, 1u << 20);
    reader_object.finish();
    node.readers.push_back(std::move(reader));
  });
  object.each("writers", [&](const Json& item, const std::string& item_path) {
    Object writer_object(item, item_path);
    WriterPlan writer;
    parse_endpoint(writer_object, writer, contexts);
    writer.stream = writer_object.integer<uint32_t>("stream", 0, 1u << 20);
    writer.subscribers = writer_object.integer<uint32_t>("subscribers", 0, 1u << 16);
    writer_object.finish();
    node.writers.push_back(std::move(writer));
  });
  object.each("rules", [&](const Json& item, const std::string& item_path) {
    node.rules.push_back(parse_rule(item, item_path, node));
  });
  object.finish();
  return node;
}

AdapterPlan parse_adapter(const Json& value, const std::string& path) {
  Object object(value, path);
  AdapterPlan adapter;
  adapter.name = object.filled_text("name");
  adapter.library = object.filled_text("library");
  adapter.profile = object.word("profile", {"default", "matched"}) == 0 ? "default" : "matched";
  adapter.options = object.object_text("options");
  adapter.network = object.object_text("network");
  const Json& environment = object.at("environment");
  Object variables(environment, object.path_of("environment"));
  for (const auto& [key, unused] : environment.items()) {
    if (key.empty() || key.find('=') != std::string::npos || key.find('\0') != std::string::npos)
      refuse(variables.path_of(key), "is no name of a variable");
    adapter.environment.emplace_back(key, variables.text(key.c_str()));
  }
  object.finish();
  return adapter;
}

SchedulingPlan parse_scheduling(const Json& value, const std::string& path) {
  Object object(value, path);
  SchedulingPlan scheduling;
  scheduling.fifo = object.word("policy", {"other", "fifo"}) == 1;
  scheduling.priority = object.integer<int>("priority", 0, 99);
  if (scheduling.fifo && scheduling.priority == 0) refuse(object.path_of("priority"), "is 0; FIFO needs 1 … 99");
  scheduling.cpus = object.integers<int>("cpus", 0, 1023);
  scheduling.lock_memory = object.boolean("lock_memory");
  object.finish();
  return scheduling;
}

uint32_t parse_heap_offset(Object& object) {
  const auto bytes = object.integer<uint32_t>("heap_offset_bytes", 0, kHeapOffsetBytesMax);
  if (bytes % kHeapStepBytes != 0) {
    refuse(object.path_of("heap_offset_bytes"), "is no multiple of " + std::to_string(kHeapStepBytes));
  }
  return bytes;
}

void parse_phases(const Json& value, Plan& plan) {
  Object phases(value, "phases");
  plan.discovery_timeout_ns = phases.integer<int64_t>("discovery_timeout_ns", 1, kHour_ns);
  plan.warmup_ns = phases.integer<int64_t>("warmup_ns", 0, kHour_ns);
  plan.measure_ns = phases.integer<int64_t>("measure_ns", 1, 24 * kHour_ns);
  plan.drain_ns = phases.integer<int64_t>("drain_ns", 0, kHour_ns);
  phases.finish();
}

// Records are told apart by these numbers: with two alike, a message would be taken for another.
void refuse_twins(const Plan& plan) {
  std::set<uint32_t> indices_seen;
  std::set<uint32_t> streams_seen;
  for (size_t at = 0; at < plan.nodes.size(); ++at) {
    const NodePlan& node = plan.nodes[at];
    const std::string path = "nodes[" + std::to_string(at) + "]";
    if (!indices_seen.insert(node.index).second)
      refuse(path + ".index", "another node has " + std::to_string(node.index) + " too");
    for (size_t writer = 0; writer < node.writers.size(); ++writer) {
      const uint32_t stream = node.writers[writer].stream;
      if (streams_seen.insert(stream).second) continue;
      refuse(path + ".writers[" + std::to_string(writer) + "].stream",
             "another writer has " + std::to_string(stream) + " too");
    }
  }
}

void parse_parts(Object& object, Plan& plan) {
  object.each("adapters",
              [&](const Json& item, const std::string& path) { plan.adapters.push_back(parse_adapter(item, path)); });
  if (plan.adapters.empty()) refuse("adapters", "is empty: a worker needs an adapter");
  object.each("contexts", [&](const Json& item, const std::string& path) {
    Object context_object(item, path);
    ContextPlan context;
    context.adapter = context_object.integer<uint32_t>("adapter", 0, static_cast<uint32_t>(plan.adapters.size() - 1));
    context.domain = context_object.integer<uint32_t>("domain", 0, std::numeric_limits<uint32_t>::max());
    context.name = context_object.filled_text("name");
    context_object.finish();
    plan.contexts.push_back(std::move(context));
  });
  if (plan.contexts.empty()) refuse("contexts", "is empty: a worker needs a context");
  object.each("nodes", [&](const Json& item, const std::string& path) {
    plan.nodes.push_back(parse_node(item, path, plan.contexts.size()));
  });
  if (plan.nodes.empty()) refuse("nodes", "is empty: a worker needs a node");
  refuse_twins(plan);
}

}  // namespace

Plan parse_plan(std::string_view text) {
  Json document;
  try {
    // What is nested deeper than any plan would overflow the stack where it is written out again.
    document = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDepthMax) throw PlanError("plan: is nested more than " + std::to_string(kDepthMax) + " levels deep");
      return true;
    });
  } catch (const Json::exception& error) {
    throw PlanError(std::string("plan: is not JSON: ") + error.what());
  }
  Object object(document, "");
  Plan plan;
  object.integer<int>("protocol", 1, 1);
  plan.cell = object.text("cell");
  plan.trial = object.integer<uint32_t>("trial", 0, std::numeric_limits<uint32_t>::max());
  plan.standalone = object.boolean("standalone");
  Object worker(object.at("worker"), "worker");
  plan.worker = worker.integer<uint32_t>("index", 0, 1u << 20);
  plan.worker_name = worker.filled_text("name");
  worker.finish();
  parse_phases(object.at("phases"), plan);
  plan.scheduling = parse_scheduling(object.at("scheduling"), "scheduling");
  plan.runtime_directory = object.filled_text("runtime_directory");
  const size_t touch = object.word("touch", {"header", "write", "read", "write+read"});
  plan.touch = {.write = touch == 1 || touch == 3, .read = touch == 2 || touch == 3};
  if (object.has("content")) plan.content = parse_content(object.at("content"), "content");
  if (object.has("heap_offset_bytes")) plan.heap_offset_bytes = parse_heap_offset(object);
  parse_parts(object, plan);
  object.finish();
  return plan;
}

}  // namespace lagometer::engine
