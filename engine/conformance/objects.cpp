// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

#include <time.h>

#include <algorithm>
#include <mutex>

#include "made_threads.hpp"
#include "traces.hpp"

namespace lagometer::conformance {

namespace {

constexpr uint32_t kReadyMax = 8;

/// Overwritten memory is kept, so that an adapter that still points there reads nonsense and not somebody else's data.
void bury(std::deque<std::vector<uint8_t>> memory) {
  static std::mutex mutex;
  static std::vector<std::deque<std::vector<uint8_t>>> graveyard;
  const std::lock_guard lock(mutex);
  graveyard.push_back(std::move(memory));
}

lagometer_qos& to_c_qos(const QosSpec& spec, Lent& lent) {
  auto& qos = lent.make<lagometer_qos>();
  qos.depth = spec.depth.value_or(1);
  qos.blocking_ns_max = spec.blocking_ns;
  qos.present = spec.more_present;
  if (spec.reliable) {
    qos.present |= LAGOMETER_QOS_RELIABILITY;
    qos.reliability = *spec.reliable ? LAGOMETER_RELIABLE : LAGOMETER_BEST_EFFORT;
  }
  if (spec.keep_all || spec.depth) {
    qos.present |= LAGOMETER_QOS_HISTORY;
    qos.history = spec.keep_all.value_or(false) ? LAGOMETER_KEEP_ALL : LAGOMETER_KEEP_LAST;
  }
  if (spec.transient_local) {
    qos.present |= LAGOMETER_QOS_DURABILITY;
    qos.durability = *spec.transient_local ? LAGOMETER_TRANSIENT_LOCAL : LAGOMETER_VOLATILE;
  }
  if (spec.deadline_ns) {
    qos.present |= LAGOMETER_QOS_DEADLINE;
    qos.deadline_ns = *spec.deadline_ns;
  }
  if (spec.lifespan_ns) {
    qos.present |= LAGOMETER_QOS_LIFESPAN;
    qos.lifespan_ns = *spec.lifespan_ns;
  }
  if (spec.lease_ns) {
    qos.present |= LAGOMETER_QOS_LIVELINESS;
    qos.liveliness = spec.manual ? LAGOMETER_MANUAL_BY_TOPIC : LAGOMETER_AUTOMATIC;
    qos.liveliness_lease_ns = *spec.lease_ns;
  }
  if (spec.partition) {
    qos.present |= LAGOMETER_QOS_PARTITION;
    qos.partition = lent.text(*spec.partition);
  }
  return qos;
}

lagometer_endpoint_config& to_c_endpoint(const EndpointSpec& spec, const Type& type, Lent& lent) {
  auto& config = lent.make<lagometer_endpoint_config>();
  config.type = type.handle();
  config.topic = lent.text(spec.topic);
  config.qos = &to_c_qos(spec.qos, lent);
  config.flags = spec.flags;
  return config;
}

}  // namespace

void rest() noexcept {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 50'000};
  nanosleep(&kPause, nullptr);
}

const lagometer_host& host() noexcept {
  static const lagometer_host common = abi_host::make_host();
  static const lagometer_host instance = [] {
    lagometer_host own = common;
    own.thread_begin = [](void* self, uint32_t role, lagometer_string name) noexcept {
      note_thread_begin();
      common.thread_begin(self, role, name);
    };
    return own;
  }();
  return instance;
}

Lent::~Lent() {
  if (!manner_.spoils) return;
  for (auto& memory : memory_) std::fill(memory.begin(), memory.end(), uint8_t{0xA5});
  bury(std::move(memory_));
}

lagometer_string Lent::text(std::string_view value) {
  auto& memory = memory_.emplace_back(value.begin(), value.end());
  return {reinterpret_cast<const char*>(memory.data()), memory.size()};
}

Adapter::Adapter(std::string library) : library_(std::move(library)) {
  const InCall in_call("lagometer_adapter");
  loaded_ = abi_host::load(library_, host());
}

std::string Adapter::describe(uint32_t kind, const void* object) const {
  std::string result;
  const auto append = [](void* user, lagometer_string text) {
    static_cast<std::string*>(user)->append(text.data, text.size);
  };
  demand("describe", [&] { return loaded_.table.describe(kind, object, append, &result); });
  return result;
}

QosSpec parse_qos(const nlohmann::json& given) {
  QosSpec qos;
  if (given.contains("reliability")) qos.reliable = given["reliability"] == "reliable";
  if (given.contains("history")) qos.keep_all = given["history"] == "keep_all";
  if (given.contains("durability")) qos.transient_local = given["durability"] == "transient_local";
  if (given.contains("depth")) qos.depth = given["depth"].get<uint32_t>();
  if (given.contains("deadline_ns")) qos.deadline_ns = given["deadline_ns"].get<int64_t>();
  if (given.contains("lifespan_ns")) qos.lifespan_ns = given["lifespan_ns"].get<int64_t>();
  if (given.contains("lease_ns")) qos.lease_ns = given["lease_ns"].get<int64_t>();
  qos.manual = given.value("liveliness", "automatic") == "manual_by_topic";
  if (given.contains("partition")) qos.partition = given["partition"].get<std::string>();
  qos.blocking_ns = given.value("blocking_ns", qos.blocking_ns);
  return qos;
}

uint32_t dispatch_of(const std::string& name) {
  if (name == "listener") return LAGOMETER_DISPATCH_LISTENER;
  return name == "waitset" ? LAGOMETER_DISPATCH_WAITSET : LAGOMETER_DISPATCH_POLL;
}

EndpointSpec parse_endpoint(const nlohmann::json& given) {
  EndpointSpec spec;
  spec.topic = given.value("topic", spec.topic);
  spec.type = given.value("type", spec.type);
  spec.bytes = given.value("bytes", spec.bytes);
  spec.qos = parse_qos(given.value("qos", nlohmann::json::object()));
  spec.dispatch = dispatch_of(given.value("dispatch", std::string("poll")));
  spec.stamps = given.value("stamps", false);
  spec.instances = given.value("instances", uint32_t{0});
  return spec;
}

Context::Context(const Adapter& adapter, const ContextSpec& spec, Manner manner) : adapter_(adapter) {
  const lagometer_adapter_table& table = adapter_.table();
  {
    Lent lent(manner);
    auto& config = lent.make<lagometer_context_config>();
    config.domain = spec.domain;
    config.name = lent.text(spec.name);
    config.profile = lent.text(spec.profile);
    config.options = lent.text(spec.options);
    config.runtime_directory = lent.text(spec.runtime_directory);
    config.network = lent.text(spec.network);
    config.security = lent.text(spec.security);
    demand("context_create", [&] { return table.context_create(&config, &handle_); });
  }
  try {
    demand("context_enable", [&] { return table.context_enable(handle_); });
    Lent lent(manner);
    const lagometer_string name = lent.text("node");
    demand("node_create", [&] { return table.node_create(handle_, name, &node_); });
  } catch (...) {
    table.context_destroy(handle_);
    throw;
  }
}

Context::~Context() {
  {
    const InCall in_call("node_destroy");
    adapter_.table().node_destroy(node_);
  }
  const InCall in_call("context_destroy");
  adapter_.table().context_destroy(handle_);
}

Type::Type(Context& context, const EndpointSpec& spec, Manner manner) : table_(context.adapter().table()) {
  Lent lent(manner);
  auto& config = lent.make<lagometer_type_config>();
  config.name = lent.text(spec.type);
  config.max_bytes = spec.bytes;
  config.flags = spec.type_flags | (spec.instances > 0 ? LAGOMETER_TYPE_KEYED : 0U);
  config.instances = spec.instances;
  demand("type_create", [&] { return table_.type_create(context.handle(), &config, &handle_); });
}

Type::~Type() {
  const InCall in_call("type_destroy");
  table_.type_destroy(handle_);
}

Writer::Writer(Context& context, const EndpointSpec& spec, uint32_t stream, Manner manner)
    : table_(context.adapter().table()),
      type_(context, spec, manner),
      stamps_(spec.stamps),
      payload_(engine::payload_type(spec.type)),
      probe_bytes_(payload_.probe_bytes(spec.bytes)),
      instances_(spec.instances),
      stream_(stream) {
  Lent lent(manner);
  auto& config = to_c_endpoint(spec, type_, lent);
  demand("writer_create", [&] { return table_.writer_create(context.node(), &config, &handle_); });
  if (stamps_) ask_for_stamps(table_, LAGOMETER_OBJECT_WRITER, handle_);
}

Writer::~Writer() {
  const InCall in_call("writer_destroy");
  table_.writer_destroy(handle_);
}

void Writer::enable() {
  demand("writer_enable", [&] { return table_.writer_enable(handle_); });
}

lagometer_status Writer::send(uint64_t sequence, uint64_t bytes, MessageKind kind) {
  auto message = made<lagometer_message>();
  const lagometer_status lent = demand("borrow", [&] { return table_.borrow(handle_, bytes, &message); });
  if (lent != LAGOMETER_OK) return lent;
  fill(message, {.kind = static_cast<uint8_t>(kind), .stream = stream_, .sequence = sequence}, payload_);
  if (instances_ > 0) message.instance = static_cast<uint32_t>(sequence % instances_);
  const lagometer_status sent = demand("commit", [&] { return table_.commit(handle_, &message); });
  if (stamps_ && sent == LAGOMETER_OK && kind == MessageKind::data)
    traces_.push_back(trace_of(sequence, message.key, message.stamps));
  return sent;
}

void Writer::probe() {
  static_cast<void>(matched());
  send(probes_++, probe_bytes_, MessageKind::probe);
}

lagometer_matched Writer::matched() {
  auto matched = made<lagometer_matched>();
  demand("writer_matched", [&] { return table_.writer_matched(handle_, &matched); });
  return matched;
}

lagometer_counters Writer::counters() {
  auto counters = made<lagometer_counters>();
  demand("writer_counters", [&] { return table_.writer_counters(handle_, &counters); });
  return counters;
}

Reader::Reader(Context& context, const EndpointSpec& spec, Called called, Manner manner)
    : table_(context.adapter().table()), type_(context, spec, manner) {
  Lent lent(manner);
  auto& config = to_c_endpoint(spec, type_, lent);
  config.dispatch = spec.dispatch;
  config.user = called.user;
  config.on_data = called.on_data;
  demand("reader_create", [&] { return table_.reader_create(context.node(), &config, &handle_); });
  if (spec.stamps) ask_for_stamps(table_, LAGOMETER_OBJECT_READER, handle_);
}

void Reader::enable() {
  demand("reader_enable", [&] { return table_.reader_enable(handle_); });
}

void Reader::destroy() noexcept {
  if (handle_ == nullptr) return;
  const InCall in_call("reader_destroy");
  table_.reader_destroy(handle_);
  handle_ = nullptr;  // only now: a running listener may still take
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  const InCall in_call("release");
  table_.release(handle_, samples, stride, count);
}

lagometer_matched Reader::matched() {
  auto matched = made<lagometer_matched>();
  demand("reader_matched", [&] { return table_.reader_matched(handle_, &matched); });
  return matched;
}

lagometer_counters Reader::counters() {
  auto counters = made<lagometer_counters>();
  demand("reader_counters", [&] { return table_.reader_counters(handle_, &counters); });
  return counters;
}

Waitset::Waitset(Context& context) : table_(context.adapter().table()) {
  demand("waitset_create", [&] { return table_.waitset_create(context.handle(), &handle_); });
}

Waitset::~Waitset() {
  const InCall in_call("waitset_destroy");
  table_.waitset_destroy(handle_);
}

void Waitset::attach(const Reader& reader) {
  demand("waitset_attach", [&] { return table_.waitset_attach(handle_, reader.handle()); });
}

lagometer_status Waitset::wait(int64_t until_ns) {
  return demand("waitset_wait", [&] { return table_.waitset_wait(handle_, until_ns); });
}

lagometer_status Waitset::wait_ready(int64_t until_ns, std::vector<uint32_t>& ready) {
  ready.assign(kReadyMax, UINT32_MAX);
  uint32_t count = 0;
  const lagometer_status status = demand("waitset_wait_ready", [&] {
    return table_.waitset_wait_ready(handle_, until_ns, ready.data(), kReadyMax, &count);
  });
  ready.resize(std::min(count, kReadyMax));
  return status;
}

void Waitset::trigger() noexcept {
  const InCall in_call("waitset_trigger");
  table_.waitset_trigger(handle_);
}

}  // namespace lagometer::conformance
