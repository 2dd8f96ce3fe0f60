// SPDX-License-Identifier: Apache-2.0
#include "plan.hpp"

#include <algorithm>
#include <initializer_list>

#include "payload_type.hpp"
#include "plan_object.hpp"

namespace lagometer::engine {

namespace {

using reading::Json;
using reading::Object;
using reading::refuse;

/// The bounds of an index into a list of this size.
Bounds<uint32_t> places_in(size_t size) { return {0, static_cast<uint32_t>(size - 1)}; }

std::vector<uint32_t> indices(Object& object, const char* key, Bounds<uint32_t> items, size_t size) {
  std::vector<uint32_t> result;
  object.each(key, items, [&](const Json& item, const std::string& path) {
    if (size == 0) refuse(path, "points at an empty list");
    result.push_back(Object::integer_of(item, path, places_in(size)));
    if (std::count(result.begin(), result.end(), result.back()) > 1) refuse(path, "is listed twice");
  });
  return result;
}

Qos parse_qos(const Json& value, const std::string& path) {
  Object object(value, path);
  Qos qos;
  if (object.has("reliability")) qos.reliable = object.word("reliability", {"best_effort", "reliable"}) == 1;
  if (object.has("history")) qos.keep_all = object.word("history", {"keep_last", "keep_all"}) == 1;
  if (object.has("depth")) qos.depth = object.integer("depth", plan_bounds::Qos::depth);
  if (object.has("durability")) qos.transient_local = object.word("durability", {"volatile", "transient_local"}) == 1;
  if (object.has("deadline_ns")) qos.deadline_ns = object.integer("deadline_ns", plan_bounds::Qos::deadline_ns);
  if (object.has("lifespan_ns")) qos.lifespan_ns = object.integer("lifespan_ns", plan_bounds::Qos::lifespan_ns);
  if (object.has("liveliness")) {
    Object part(object.at("liveliness"), object.path_of("liveliness"));
    qos.liveliness = Liveliness{.manual = part.word("kind", {"automatic", "manual"}) == 1,
                                .lease_ns = part.integer("lease_ns", plan_bounds::Liveliness::lease_ns)};
    part.finish();
  }
  if (object.has("instances")) qos.instances = object.integer("instances", plan_bounds::Qos::instances);
  if (object.has("partition")) qos.partition = object.text("partition", plan_bounds::Qos::partition_characters);
  object.finish();
  return qos;
}

void parse_endpoint(Object& object, EndpointPlan& endpoint, size_t contexts) {
  endpoint.context = object.integer("context", places_in(contexts));
  endpoint.topic = object.text("topic", plan_bounds::Endpoint::topic_characters);
  const PayloadType& type =
      kPayloadTypes[object.word("type", {"bytes", "fixed", "string", "Image", "Imu", "PointCloud2"})];
  endpoint.type = type.name;
  endpoint.payload_bytes = object.integer("payload_bytes", plan_bounds::Endpoint::payload_bytes);
  if (!type.has_size(endpoint.payload_bytes))
    refuse(object.path_of("payload_bytes"), "is " + std::to_string(endpoint.payload_bytes) + ", a size that the type " +
                                                endpoint.type + " does not have");
  endpoint.capacity = object.integer("capacity", plan_bounds::Endpoint::capacity);
  endpoint.qos = parse_qos(object.at("qos"), object.path_of("qos"));
}

std::shared_ptr<const std::vector<int64_t>> parse_intervals(Object& object) {
  auto intervals_ns = std::make_shared<std::vector<int64_t>>();
  int64_t sum_ns = 0;
  const auto note = [&](const Json& item, const std::string& path) {
    intervals_ns->push_back(Object::integer_of(item, path, plan_bounds::RecordedSchedule::intervals_ns));
    sum_ns += intervals_ns->back();
  };
  object.each("intervals_ns", plan_bounds::RecordedSchedule::intervals_ns_items, note);
  if (sum_ns / static_cast<int64_t>(intervals_ns->size()) < kIntervalMeanMin_ns) {
    refuse(object.path_of("intervals_ns"),
           "must have a mean of " + std::to_string(kIntervalMeanMin_ns) + " ns or more");
  }
  return intervals_ns;
}

SchedulePlan parse_schedule(const Json& value, const std::string& path) {
  Object object(value, path);
  SchedulePlan schedule;
  schedule.kind = static_cast<ScheduleKind>(object.word("kind", {"periodic", "poisson", "burst", "ramp", "recorded"}));
  if (object.has("late")) schedule.late = static_cast<LatePolicy>(object.word("late", {"burst", "skip", "shift"}));
  if (schedule.kind == ScheduleKind::poisson)
    schedule.seed = object.integer("seed", plan_bounds::PoissonSchedule::seed);
  if (schedule.kind == ScheduleKind::burst)
    schedule.messages = object.integer("messages", plan_bounds::BurstSchedule::messages);
  if (schedule.kind == ScheduleKind::ramp) {
    schedule.end_period_ns = object.integer("end_period_ns", plan_bounds::RampSchedule::end_period_ns);
    schedule.begin_ns = object.integer("begin_ns", plan_bounds::RampSchedule::begin_ns);
    schedule.duration_ns = object.integer("duration_ns", plan_bounds::RampSchedule::duration_ns);
  }
  if (schedule.kind == ScheduleKind::recorded) schedule.intervals_ns = parse_intervals(object);
  object.finish();
  return schedule;
}

WorkPlan parse_work(const Json& value, const std::string& path) {
  Object object(value, path);
  WorkPlan work;
  constexpr std::array kKinds{WorkKind::normal, WorkKind::lognormal, WorkKind::recorded};
  work.kind = kKinds[object.word("kind", {"normal", "lognormal", "recorded"})];
  if (work.kind == WorkKind::recorded) {
    auto times_ns = std::make_shared<std::vector<int64_t>>();
    object.each("times_ns", plan_bounds::RecordedWork::times_ns_items, [&](const Json& item, const std::string& where) {
      times_ns->push_back(Object::integer_of(item, where, plan_bounds::RecordedWork::times_ns));
    });
    work.times_ns = std::move(times_ns);
  } else if (work.kind == WorkKind::normal) {
    work.spread_ns = object.integer("spread_ns", plan_bounds::NormalWork::spread_ns);
    work.seed = object.integer("seed", plan_bounds::NormalWork::seed);
  } else {
    work.sigma = object.number("sigma", plan_bounds::LognormalWork::sigma);
    work.seed = object.integer("seed", plan_bounds::LognormalWork::seed);
  }
  object.finish();
  return work;
}

ContentPlan parse_content(const Json& value, const std::string& path) {
  Object object(value, path);
  ContentPlan content;
  content.kind = static_cast<ContentKind>(object.word("kind", {"any", "zeros", "random", "recorded"}));
  if (content.kind == ContentKind::random) content.seed = object.integer("seed", plan_bounds::RandomContent::seed);
  if (content.kind == ContentKind::recorded) {
    content.path = object.text("path", plan_bounds::RecordedContent::path_characters);
    content.crc32 = object.integer("crc32", plan_bounds::RecordedContent::crc32);
  }
  object.finish();
  return content;
}

RulePlan parse_rule(const Json& value, const std::string& path, const NodePlan& node) {
  Object object(value, path);
  RulePlan rule;
  rule.trigger = static_cast<Trigger>(object.word("trigger", {"timer", "any", "all", "closed_loop"}));
  rule.readers = indices(object, "readers", plan_bounds::Rule::readers_items, node.readers.size());
  if (object.has("uses"))
    rule.uses = indices(object, "uses", plan_bounds::MessageRule::uses_items, node.readers.size());
  rule.writers = indices(object, "writers", plan_bounds::Rule::writers_items, node.writers.size());
  rule.work_ns = object.integer("work_ns", plan_bounds::Rule::work_ns);
  if (object.has("work")) rule.work = parse_work(object.at("work"), object.path_of("work"));
  if (rule.trigger == Trigger::timer) {
    rule.period_ns = object.integer("period_ns", plan_bounds::TimerRule::period_ns);
    rule.offset_ns = object.integer("offset_ns", plan_bounds::TimerRule::offset_ns);
    if (object.has("schedule")) rule.schedule = parse_schedule(object.at("schedule"), object.path_of("schedule"));
  } else if (rule.readers.empty()) {
    refuse(object.path_of("readers"), "is empty: only a timer fires without a message");
  }
  if (rule.trigger == Trigger::closed_loop) {
    rule.timeout_ns = object.integer("timeout_ns", plan_bounds::ClosedLoopRule::timeout_ns);
    rule.messages_max = object.integer("messages_max", plan_bounds::ClosedLoopRule::messages_max);
    if (rule.writers.empty()) refuse(object.path_of("writers"), "is empty: a closed loop sends");
  }
  if (object.has("echo")) rule.echo = object.boolean("echo");
  if (rule.echo && rule.trigger != Trigger::any) refuse(object.path_of("echo"), "goes with the trigger any alone");
  if (!rule.uses.empty() && rule.trigger != Trigger::any && rule.trigger != Trigger::all)
    refuse(object.path_of("uses"), "goes with the triggers any and all alone");
  object.finish();
  return rule;
}

/// What a writer's messages are filled with, and their sizes if they differ.
void parse_payloads(Object& object, WriterPlan& writer) {
  if (object.has("content")) writer.content = parse_content(object.at("content"), object.path_of("content"));
  if (!object.has("sizes_bytes")) return;
  const PayloadType& type = payload_type(writer.type);
  object.each("sizes_bytes", plan_bounds::Writer::sizes_bytes_items, [&](const Json& item, const std::string& path) {
    const uint32_t size = Object::integer_of(item, path, plan_bounds::Writer::sizes_bytes);
    if (size > writer.payload_bytes || !type.has_size(size))
      refuse(path, "is " + std::to_string(size) + ", larger than payload_bytes or no size of the type " + writer.type);
    writer.sizes_bytes.push_back(size);
  });
}

/// The reader of its node that belongs to a writer of requests or of replies.
void parse_service(Object& object, WriterPlan& writer, const std::vector<ReaderPlan>& readers) {
  const auto reader_of = [&](Object& holder, const char* key) {
    if (readers.empty()) refuse(holder.path_of(key), "points at an empty list");
    const uint32_t reader = holder.integer(key, places_in(readers.size()));
    if (readers[reader].topic == writer.topic && readers[reader].context == writer.context) return reader;
    refuse(holder.path_of(key), "is a reader of another topic or context: both ends of a service must have the same");
  };
  if (object.has("replied_on")) writer.replied_on = reader_of(object, "replied_on");
  if (!object.has("answers")) return;
  if (writer.replied_on)
    refuse(object.path_of("answers"), "conflicts with replied_on: a writer sends requests or replies");
  Object answers(object.at("answers"), object.path_of("answers"));
  writer.answers = AnswersPlan{.reader = reader_of(answers, "reader"),
                               .stream = answers.integer("stream", plan_bounds::Answers::stream)};
  answers.finish();
}

/// A reply needs exactly the request that it answers.
void check_answers(const RulePlan& rule, const std::string& path, const NodePlan& node) {
  for (const uint32_t place : rule.writers) {
    const std::optional<AnswersPlan>& answers = node.writers[place].answers;
    if (!answers) continue;
    const bool heard = rule.readers.size() == 1 && rule.readers.front() == answers->reader;
    if (rule.trigger != Trigger::any || !heard)
      refuse(path + ".writers",
             "has a writer of replies: such a rule has the trigger any, and the reader of the requests");
  }
}

NodePlan parse_node(const Json& value, const std::string& path, size_t contexts) {
  Object object(value, path);
  NodePlan node;
  node.name = object.text("name", plan_bounds::Node::name_characters);
  node.index = object.integer("index", plan_bounds::Node::index);
  node.dispatch = static_cast<Dispatch>(object.word("dispatch", {"poll", "waitset", "listener"}));
  node.cpus = object.integers<int>("cpus", plan_bounds::Node::cpus_items, plan_bounds::Node::cpus);
  object.each("readers", plan_bounds::Node::readers_items, [&](const Json& item, const std::string& item_path) {
    Object reader_object(item, item_path);
    ReaderPlan reader;
    parse_endpoint(reader_object, reader, contexts);
    reader.streams =
        reader_object.integers<uint32_t>("streams", plan_bounds::Reader::streams_items, plan_bounds::Reader::streams);
    if (reader_object.has("sizes_vary")) reader.sizes_vary = reader_object.boolean("sizes_vary");
    if (reader_object.has("shares_clock")) reader.shares_clock = reader_object.boolean("shares_clock");
    reader_object.finish();
    node.readers.push_back(std::move(reader));
  });
  object.each("writers", plan_bounds::Node::writers_items, [&](const Json& item, const std::string& item_path) {
    Object writer_object(item, item_path);
    WriterPlan writer;
    parse_endpoint(writer_object, writer, contexts);
    writer.stream = writer_object.integer("stream", plan_bounds::Writer::stream);
    writer.subscribers = writer_object.integer("subscribers", plan_bounds::Writer::subscribers);
    parse_payloads(writer_object, writer);
    parse_service(writer_object, writer, node.readers);
    writer_object.finish();
    node.writers.push_back(std::move(writer));
  });
  object.each("rules", plan_bounds::Node::rules_items, [&](const Json& item, const std::string& item_path) {
    node.rules.push_back(parse_rule(item, item_path, node));
    check_answers(node.rules.back(), item_path, node);
  });
  object.finish();
  return node;
}

AdapterPlan parse_adapter(const Json& value, const std::string& path) {
  Object object(value, path);
  AdapterPlan adapter;
  adapter.name = object.text("name", plan_bounds::Adapter::name_characters);
  adapter.library = object.text("library", plan_bounds::Adapter::library_characters);
  adapter.profile = object.word("profile", {"default", "matched"}) == 0 ? "default" : "matched";
  adapter.options = object.object_text("options");
  adapter.network = object.object_text("network");
  const Json& environment = object.at("environment");
  Object variables(environment, object.path_of("environment"));
  for (const auto& [key, unused] : environment.items()) {
    if (key.empty() || key.find('=') != std::string::npos || key.find('\0') != std::string::npos)
      refuse(variables.path_of(key), "is not the name of a variable");
    adapter.environment.emplace_back(key, variables.text(key.c_str(), plan_bounds::Adapter::environment_characters));
  }
  object.finish();
  return adapter;
}

SchedulingPlan parse_scheduling(const Json& value, const std::string& path) {
  Object object(value, path);
  SchedulingPlan scheduling;
  scheduling.fifo = object.word("policy", {"other", "fifo"}) == 1;
  scheduling.priority = static_cast<int>(object.integer("priority", plan_bounds::Scheduling::priority));
  if (scheduling.fifo && scheduling.priority == 0) refuse(object.path_of("priority"), "is 0; FIFO needs 1 … 99");
  scheduling.cpus = object.integers<int>("cpus", plan_bounds::Scheduling::cpus_items, plan_bounds::Scheduling::cpus);
  scheduling.lock_memory = object.boolean("lock_memory");
  object.finish();
  return scheduling;
}

void parse_phases(const Json& value, Plan& plan) {
  Object phases(value, "phases");
  plan.discovery_timeout_ns = phases.integer("discovery_timeout_ns", plan_bounds::Phases::discovery_timeout_ns);
  plan.warmup_ns = phases.integer("warmup_ns", plan_bounds::Phases::warmup_ns);
  plan.measure_ns = phases.integer("measure_ns", plan_bounds::Phases::measure_ns);
  plan.drain_ns = phases.integer("drain_ns", plan_bounds::Phases::drain_ns);
  phases.finish();
}

/// The files that secure a participant, checked, as the text that its adapter gets.
std::string parse_security(Object& context) {
  using Bounds = plan_bounds::Security;
  Object security(context.at("security"), context.path_of("security"));
  (void)security.word("kind", {"sign", "encrypt"});
  (void)security.text("identity_ca", Bounds::identity_ca_characters);
  (void)security.text("permissions_ca", Bounds::permissions_ca_characters);
  (void)security.text("certificate", Bounds::certificate_characters);
  (void)security.text("private_key", Bounds::private_key_characters);
  (void)security.text("governance", Bounds::governance_characters);
  (void)security.text("permissions", Bounds::permissions_characters);
  security.finish();
  return context.object_text("security");
}

void parse_parts(Object& object, Plan& plan) {
  object.each("adapters", plan_bounds::Plan::adapters_items,
              [&](const Json& item, const std::string& path) { plan.adapters.push_back(parse_adapter(item, path)); });
  object.each("contexts", plan_bounds::Plan::contexts_items, [&](const Json& item, const std::string& path) {
    Object context_object(item, path);
    ContextPlan context;
    context.adapter = context_object.integer("adapter", places_in(plan.adapters.size()));
    context.domain = context_object.integer("domain", plan_bounds::Context::domain);
    context.name = context_object.text("name", plan_bounds::Context::name_characters);
    if (context_object.has("security")) context.security = parse_security(context_object);
    context_object.finish();
    plan.contexts.push_back(std::move(context));
  });
  object.each("nodes", plan_bounds::Plan::nodes_items, [&](const Json& item, const std::string& path) {
    plan.nodes.push_back(parse_node(item, path, plan.contexts.size()));
  });
  check_together(plan);
}

}  // namespace

Plan parse_plan(std::string_view text) {
  Json document;
  try {
    // JSON nested deeper than any plan would overflow the stack when it is written out again.
    document = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > static_cast<int>(kNestingLevelsMax))
        throw PlanError("plan: is nested more than " + std::to_string(kNestingLevelsMax) + " levels deep");
      return true;
    });
  } catch (const Json::exception& error) {
    throw PlanError(std::string("plan: is not JSON: ") + error.what());
  }
  Object object(document, "");
  Plan plan;
  object.integer("protocol", plan_bounds::Plan::protocol);
  plan.cell = object.text("cell", plan_bounds::Plan::cell_characters);
  plan.trial = object.integer("trial", plan_bounds::Plan::trial);
  plan.standalone = object.boolean("standalone");
  Object worker(object.at("worker"), "worker");
  plan.worker = worker.integer("index", plan_bounds::Worker::index);
  plan.worker_name = worker.text("name", plan_bounds::Worker::name_characters);
  if (worker.has("host")) (void)worker.text("host", plan_bounds::Worker::host_characters);
  if (worker.has("host_number")) plan.host_number = worker.integer("host_number", plan_bounds::Worker::host_number);
  worker.finish();
  parse_phases(object.at("phases"), plan);
  plan.scheduling = parse_scheduling(object.at("scheduling"), "scheduling");
  plan.runtime_directory = object.text("runtime_directory", plan_bounds::Plan::runtime_directory_characters);
  const size_t touch = object.word("touch", {"header", "write", "read", "write+read"});
  plan.touch = {.write = touch == 1 || touch == 3, .read = touch == 2 || touch == 3};
  if (object.has("start"))
    plan.matching = object.word("start", {"matched", "subscriber-first", "publisher-first"}) == 0;
  if (object.has("start_ns"))
    plan.matching = object.integer("start_ns", plan_bounds::Plan::start_ns) == 0 && plan.matching;
  if (object.has("content")) plan.content = parse_content(object.at("content"), "content");
  if (object.has("heap_offset_bytes"))
    plan.heap_offset_bytes = object.integer("heap_offset_bytes", plan_bounds::Plan::heap_offset_bytes);
  if (object.has("layer_stamps")) plan.layer_stamps = object.boolean("layer_stamps");
  if (object.has("threads")) plan.one_thread = object.word("threads", {"per-node", "per-process"}) == 1;
  parse_parts(object, plan);
  object.finish();
  return plan;
}

}  // namespace lagometer::engine
