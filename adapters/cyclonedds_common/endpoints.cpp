// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "errors.hpp"
#include "layer_notes.hpp"
#include "objects.hpp"

namespace lagometer::cyclonedds {

namespace {

constexpr const char* kBytesName = "lagometer::Bytes";
constexpr const char* kKeyedName = "lagometer::KeyedBytes";

/// names: separated by semicolons.
void set_partitions(dds_qos_t* qos, std::string names) {
  std::vector<const char*> each{names.c_str()};
  for (size_t at = names.find(';'); at != std::string::npos; at = names.find(';', at + 1)) {
    names[at] = '\0';
    each.push_back(names.c_str() + at + 1);
  }
  dds_qset_partition(qos, static_cast<uint32_t>(each.size()), each.data());
}

std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> make_qos(const lagometer_qos& qos) {
  constexpr uint64_t kKnown = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY |
                              LAGOMETER_QOS_DEADLINE | LAGOMETER_QOS_LIFESPAN | LAGOMETER_QOS_LIVELINESS |
                              LAGOMETER_QOS_PARTITION;
  if ((qos.present & ~kKnown) != 0) throw unsupported("a QoS policy is not known here");
  std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> result(dds_create_qos(), dds_delete_qos);
  const auto kind = qos.history == LAGOMETER_KEEP_ALL ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  const auto depth = static_cast<int32_t>(std::max(1U, qos.depth));
  if ((qos.present & LAGOMETER_QOS_RELIABILITY) != 0) {
    dds_qset_reliability(result.get(),
                         qos.reliability == LAGOMETER_RELIABLE ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         qos.blocking_ns_max);
  }
  if ((qos.present & LAGOMETER_QOS_HISTORY) != 0) dds_qset_history(result.get(), kind, depth);
  if ((qos.present & LAGOMETER_QOS_DURABILITY) != 0) {
    const bool kept = qos.durability == LAGOMETER_TRANSIENT_LOCAL;
    dds_qset_durability(result.get(), kept ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
    if (kept)
      dds_qset_durability_service(result.get(), 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                  DDS_LENGTH_UNLIMITED);
  }
  if ((qos.present & LAGOMETER_QOS_DEADLINE) != 0) dds_qset_deadline(result.get(), qos.deadline_ns);
  if ((qos.present & LAGOMETER_QOS_LIFESPAN) != 0) dds_qset_lifespan(result.get(), qos.lifespan_ns);
  if ((qos.present & LAGOMETER_QOS_LIVELINESS) != 0) {
    const bool manual = qos.liveliness == LAGOMETER_MANUAL_BY_TOPIC;
    dds_qset_liveliness(result.get(), manual ? DDS_LIVELINESS_MANUAL_BY_TOPIC : DDS_LIVELINESS_AUTOMATIC,
                        qos.liveliness_lease_ns);
  }
  if ((qos.present & LAGOMETER_QOS_PARTITION) != 0) {
    set_partitions(result.get(), std::string(view(qos.partition)));
  }
  return result;
}

}  // namespace

Type::Type(Context&, const lagometer_type_config& config)
    : message_(ros2::message_of(view(config.name))),
      fixed_(view(config.name) == "fixed"),
      keyed_(config.flags == LAGOMETER_TYPE_KEYED),
      max_bytes_(config.max_bytes) {
  if (!message_ && !fixed_ && view(config.name) != "bytes")
    throw unsupported("no type '" + std::string(view(config.name)) +
                      "'; valid: bytes, fixed, string, Image, Imu, PointCloud2");
  constexpr uint32_t kMember = uint32_t{DDS_OP_ADR} | uint32_t{DDS_OP_SUBTYPE_1BY};
  // What the vendor's compiler generates for the three types; see docs/ADAPTERS.md for their IDL.
  if (message_) {
    if (!ros2::has_size(*message_, max_bytes_))
      throw invalid("a payload of type " + std::string(view(config.name)) + " has " + ros2::sizes_of(*message_) +
                    ", not " + std::to_string(max_bytes_));
  } else if (fixed_) {
    name_ = "lagometer::Fixed" + std::to_string(max_bytes_);
    operations_ = {kMember | uint32_t{DDS_OP_TYPE_ARR}, 0, static_cast<uint32_t>(max_bytes_), DDS_OP_RTS};
  } else if (keyed_) {
    name_ = kKeyedName;
    operations_ = {kMember | uint32_t{DDS_OP_TYPE_4BY} | uint32_t{DDS_OP_FLAG_KEY} | uint32_t{DDS_OP_FLAG_MU},
                   offsetof(KeyedOctets, instance),
                   kMember | uint32_t{DDS_OP_TYPE_SEQ},
                   offsetof(KeyedOctets, data),
                   DDS_OP_RTS,
                   uint32_t{DDS_OP_KOF} | 1U,  // the key's position in the sample, kKey points here
                   0};
  } else {
    name_ = kBytesName;
    operations_ = {kMember | uint32_t{DDS_OP_TYPE_SEQ}, 0, DDS_OP_RTS};
  }
}

std::string Type::topic_name(std::string_view topic) const {
  return message_ ? ros2::topic_name(topic) : std::string(topic);
}

Entity Type::create_topic(dds_entity_t participant, const std::string& name) const {
  static constexpr dds_key_descriptor_t kKey[] = {{.m_name = "instance", .m_offset = 5, .m_idx = 0}};
  const dds_topic_descriptor_t own = {.m_size = static_cast<uint32_t>(fixed_   ? max_bytes_
                                                                      : keyed_ ? sizeof(KeyedOctets)
                                                                               : sizeof(OctetSequence)),
                                      .m_align = fixed_ ? 1 : static_cast<uint32_t>(alignof(OctetSequence)),
                                      .m_flagset = fixed_   ? DDS_TOPIC_FIXED_SIZE
                                                   : keyed_ ? DDS_TOPIC_FIXED_KEY | DDS_TOPIC_FIXED_KEY_XCDR2
                                                            : 0U,
                                      .m_nkeys = keyed_ ? 1U : 0U,
                                      .m_typename = name_.c_str(),
                                      .m_keys = keyed_ ? kKey : nullptr,
                                      .m_nops = keyed_ ? 3U : 2U,
                                      .m_ops = operations_.data(),
                                      .m_meta = "",
                                      .type_information = {},
                                      .type_mapping = {},
                                      .restrict_data_representation = 0};
  const dds_topic_descriptor_t& descriptor = message_ ? descriptor_of(*message_) : own;
  return {dds_create_topic(participant, &descriptor, name.c_str(), nullptr, nullptr), "making topic " + name};
}

std::unique_ptr<Message> Type::make_message() const {
  if (message_) {
    switch (*message_) {
      case ros2::Message::string:
        return std::make_unique<StringMessage>(max_bytes_);
      case ros2::Message::image:
        return std::make_unique<ImageMessage>(max_bytes_);
      case ros2::Message::imu:
        return std::make_unique<ImuMessage>();
      case ros2::Message::point_cloud:
        return std::make_unique<PointCloudMessage>(max_bytes_);
    }
  }
  if (fixed_) return std::make_unique<FixedMessage>(max_bytes_);
  if (keyed_) return std::make_unique<KeyedMessage>(max_bytes_);
  return std::make_unique<BytesMessage>(max_bytes_);
}

void Type::check(uint64_t bytes, const std::string& topic) const {
  if (bytes > max_bytes_ || (fixed_ && bytes != max_bytes_))
    throw invalid("a message on topic " + topic + " has " + (fixed_ ? "" : "up to ") + std::to_string(max_bytes_) +
                  " bytes, not " + std::to_string(bytes));
  if (message_ && !ros2::has_size(*message_, bytes))
    throw invalid("a message on topic " + topic + " has " + ros2::sizes_of(*message_) + ", not " +
                  std::to_string(bytes));
}

Endpoint::Endpoint(Node& node, const lagometer_endpoint_config& config)
    : participant_(node.context.participant()),
      in_shared_memory_(node.context.settings().in_shared_memory),
      type_(*reinterpret_cast<const Type*>(config.type)),
      topic_name_(type_.topic_name(view(config.topic))),
      topic_(type_.create_topic(participant_, topic_name_)),
      qos_(make_qos(*config.qos)),
      user_(config.user),
      on_event_(config.on_event),
      on_policy_(config.on_policy) {
  const bool kept = (config.qos->present & LAGOMETER_QOS_DURABILITY) != 0;
  if (in_shared_memory_ && kept && config.qos->durability == LAGOMETER_TRANSIENT_LOCAL)
    throw unsupported(
        "with the option shared_memory a late joiner gets nothing of what was sent before, however it was kept; ask "
        "for durability volatile, or leave out shared_memory (topic " +
        topic_name_ + ")");
}

nlohmann::json Endpoint::describe_entity(dds_entity_t entity, bool reliable_by_default) const {
  const std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> qos(dds_create_qos(), dds_delete_qos);
  check(dds_get_qos(entity, qos.get()), "reading the quality of service back");
  nlohmann::json settings = nlohmann::json::object();
  const auto put = [&](const char* key, const nlohmann::json& value, const nlohmann::json& usual) {
    if (value != usual) settings[key] = {{"value", value}, {"default", usual}};
  };
  dds_reliability_kind_t reliability{};
  dds_duration_t blocking_ns = 0;
  if (dds_qget_reliability(qos.get(), &reliability, &blocking_ns)) {
    const auto name = [](bool reliable) { return reliable ? "RELIABLE" : "BEST_EFFORT"; };
    put("reliability", name(reliability == DDS_RELIABILITY_RELIABLE), name(reliable_by_default));
    if (reliability == DDS_RELIABILITY_RELIABLE) put("reliability.max_blocking_time_ns", blocking_ns, DDS_MSECS(100));
  }
  dds_history_kind_t history{};
  int32_t depth = 0;
  if (dds_qget_history(qos.get(), &history, &depth)) {
    const bool all = history == DDS_HISTORY_KEEP_ALL;
    put("history", all ? "KEEP_ALL" : "KEEP_LAST", "KEEP_LAST");
    if (!all) put("history.depth", depth, 1);
  }
  dds_durability_kind_t durability{};
  if (dds_qget_durability(qos.get(), &durability)) {
    put("durability", durability == DDS_DURABILITY_TRANSIENT_LOCAL ? "TRANSIENT_LOCAL" : "VOLATILE", "VOLATILE");
  }
  dds_duration_t period_ns = 0;
  if (dds_qget_deadline(qos.get(), &period_ns) && period_ns != DDS_INFINITY) put("deadline_ns", period_ns, nullptr);
  if (dds_qget_lifespan(qos.get(), &period_ns) && period_ns != DDS_INFINITY) put("lifespan_ns", period_ns, nullptr);
  dds_liveliness_kind_t liveliness{};
  if (dds_qget_liveliness(qos.get(), &liveliness, &period_ns) && period_ns != DDS_INFINITY) {
    put("liveliness", liveliness == DDS_LIVELINESS_AUTOMATIC ? "AUTOMATIC" : "MANUAL_BY_TOPIC", nullptr);
    put("liveliness.lease_ns", period_ns, nullptr);
  }
  nlohmann::json result{{"settings", settings}, {"paste", nlohmann::json::array()}};
  if (!in_shared_memory_) return result;
  // Two endpoints use it if both have it; otherwise the network, or delivery within a process.
  result["transport"] = {{"within_process", {"process"}}, {"between_processes", {"udp"}}};
  if (shared_memory::carries(entity)) {
    result["transport"] = {{"within_process", {"shared-memory", "process"}},
                           {"between_processes", {"shared-memory", "udp"}}};
  }
  return result;
}

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : Endpoint(node, config), message_(type_.make_message()) {}

Listener Writer::event_listener() {
  Listener listener(nullptr, dds_delete_listener);
  if (on_event_ == nullptr) return listener;
  listener.reset(dds_create_listener(this));
  dds_lset_publication_matched(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Writer*>(self)->tell(LAGOMETER_EVENT_MATCHED, status.current_count);
  });
  dds_lset_offered_deadline_missed(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Writer*>(self)->tell(LAGOMETER_EVENT_DEADLINE_MISSED, status.total_count);
  });
  dds_lset_offered_incompatible_qos(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Writer*>(self)->tell_incompatible(status.last_policy_id, status.total_count);
  });
  return listener;
}

void Writer::enable() {
  const Listener listener = event_listener();
  writer_ = Entity(dds_create_writer(participant_, topic_.get(), qos_.get(), listener.get()),
                   "making a writer on " + topic_name_);
  lends_ = type_.is_fixed() && shared_memory::lends(writer_.get());
  if (stamped_layers_ == 0) return;
  dds_guid_t guid;
  check(dds_get_guid(writer_.get(), &guid), "asking for the writer's GUID on " + topic_name_);
  id_ = id_of_guid(guid.v);
}

void Writer::reshape(uint64_t bytes) {
  type_.check(bytes, topic_name_);
  region_count_ = message_->shape(bytes, regions_);
  shaped_bytes_ = bytes;
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  if (bytes != shaped_bytes_) reshape(bytes);
  message.origin = lends_ ? LAGOMETER_ORIGIN_LOANED : LAGOMETER_ORIGIN_COPIED;
  message.region_count = region_count_;
  std::copy_n(regions_, region_count_, message.regions);
  sample_ = message_->sample();
  if (!lends_) return LAGOMETER_OK;
  const dds_return_t status = shared_memory::lend(writer_.get(), &sample_);
  if (status == DDS_RETCODE_ERROR) return LAGOMETER_REJECTED;              // RouDi's pool has no free chunk
  if (status < 0) check(status, "borrowing a sample for " + topic_name_);  // builds the text only for an error
  message.regions[0].data = static_cast<uint8_t*>(sample_);
  return LAGOMETER_OK;
}

void Writer::discard(lagometer_message&) noexcept {
  if (lends_) dds_return_loan(writer_.get(), &sample_, 1);
}

lagometer_status Writer::commit(lagometer_message& message) {
  if (type_.is_keyed()) message_->set_instance(message.instance);
  const bool stamped = stamped_layers_ != 0 && has_stamps(message);
  const dds_return_t status = stamped ? write_stamped(message) : dds_write(writer_.get(), sample_);
  if (status == DDS_RETCODE_TIMEOUT) return LAGOMETER_REJECTED;
  if (in_shared_memory_ && status == DDS_RETCODE_OUT_OF_RESOURCES) return LAGOMETER_REJECTED;  // as in borrow()
  if (status < 0) check(status, "writing on " + topic_name_);
  return LAGOMETER_OK;
}

// Readers get no sequence number (dds_sample_info_t has none), so the send time identifies a message. dds_write() uses
// the same clock; here no two messages get the same time, even if that clock is set back.
dds_return_t Writer::write_stamped(lagometer_message& message) {
  const dds_time_t source_time = std::max(dds_time(), last_source_time_ + 1);
  last_source_time_ = source_time;
  message.key = {.writer_id = id_, .middleware_sequence = 0, .source_time_ns = source_time};
  const LayerNotes notes(LAGOMETER_LAYER_SERIALISE, (stamped_layers_ & LAGOMETER_STAMPS_SERIALISE) != 0);
  const lagometer_stamp entered = stamp_of(LAGOMETER_LAYER_WRITE);
  const dds_return_t status = dds_write_ts(writer_.get(), sample_, source_time);
  const lagometer_stamp left = stamp_of(LAGOMETER_LAYER_WRITE | LAGOMETER_LAYER_END);
  add_stamps(message.stamps, (stamped_layers_ & LAGOMETER_STAMPS_WRITE) != 0, entered, notes.find(sample_), left);
  return status;
}

void Writer::matched(lagometer_matched& out) const {
  dds_publication_matched_status_t status;
  check(dds_get_publication_matched_status(writer_.get(), &status), "matched readers");
  out.count = status.current_count;
  out.exact = 0;
}

void Writer::counters(lagometer_counters& out) const { out.present = 0; }

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : Endpoint(node, config), dispatch_(config.dispatch), on_data_(config.on_data), pointers_(kBatch), infos_(kBatch) {
  for (void*& pointer : pointers_) pointer = messages_.emplace_back(type_.make_message())->sample();
}

Reader::~Reader() {
  condition_ = Entity();
  reader_ = Entity();  // before the messages: a callback may still use them
}

void Reader::on_data(dds_entity_t, void* self) noexcept {
  const auto* reader = static_cast<const Reader*>(self);
  reader->on_data_(reader->user_);
}

Listener Reader::event_listener() {
  Listener listener(nullptr, dds_delete_listener);
  if (on_event_ == nullptr) return listener;
  listener.reset(dds_create_listener(this));
  dds_lset_subscription_matched(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Reader*>(self)->tell(LAGOMETER_EVENT_MATCHED, status.current_count);
  });
  dds_lset_sample_lost(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Reader*>(self)->tell(LAGOMETER_EVENT_LOST, status.total_count);
  });
  dds_lset_requested_deadline_missed(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Reader*>(self)->tell(LAGOMETER_EVENT_DEADLINE_MISSED, status.total_count);
  });
  dds_lset_requested_incompatible_qos(listener.get(), [](dds_entity_t, auto status, void* self) {
    static_cast<Reader*>(self)->tell_incompatible(status.last_policy_id, status.total_count);
  });
  return listener;
}

void Reader::enable() {
  if (in_shared_memory_) place_ = shared_memory::reader_place();
  // Register for events from the start: events before a listener is set are not reported.
  Listener listener = event_listener();
  reader_ = Entity(dds_create_reader(participant_, topic_.get(), qos_.get(), listener.get()),
                   "making a reader on " + topic_name_);
  in_place_ = type_.is_fixed() && shared_memory::shows_in_place(reader_.get());
  condition_ = Entity(dds_create_readcondition(reader_.get(), DDS_ANY_STATE), "making a read condition");
  // Only now, because the listener takes from reader_. Messages that arrived in between wait in the reader for the next
  // one.
  if (dispatch_ != LAGOMETER_DISPATCH_LISTENER) return;
  if (!listener) listener.reset(dds_create_listener(this));
  dds_lset_data_available(listener.get(), &Reader::on_data);
  check(dds_set_listener(reader_.get(), listener.get()), "setting a listener");
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  const uint32_t limit = std::min(max, kBatch);
  if (in_place_) std::fill(pointers_.begin(), pointers_.end(), nullptr);
  const bool stamped = stamped_layers_ != 0 && max > 0 && has_stamps(*samples);
  std::optional<LayerNotes> notes;
  if (stamped) notes.emplace(LAGOMETER_LAYER_DESERIALISE, (stamped_layers_ & LAGOMETER_STAMPS_DESERIALISE) != 0);
  const lagometer_stamp entered = stamped ? stamp_of(LAGOMETER_LAYER_TAKE) : lagometer_stamp{};
  const dds_return_t count = dds_take(reader_.get(), pointers_.data(), infos_.data(), limit, limit);
  const lagometer_stamp left = stamped ? stamp_of(LAGOMETER_LAYER_TAKE | LAGOMETER_LAYER_END) : lagometer_stamp{};
  if (count < 0) check(count, "taking from " + topic_name_);
  taken = static_cast<uint32_t>(count);
  for (uint32_t index = 0; index < taken; ++index) {
    lagometer_sample& sample = sample_at(samples, stride, index);
    show(sample, index);
    if (!stamped) continue;
    sample.writer_id = id_of(infos_[index].publication_handle);
    const bool call = (stamped_layers_ & LAGOMETER_STAMPS_TAKE) != 0;
    add_stamps(sample.stamps, call, entered, notes->find(pointers_[index]), left);
  }
  return LAGOMETER_OK;
}

// A handle is local to this process, so this asks for the GUID when a writer is heard for the first time.
uint64_t Reader::id_of(dds_instance_handle_t writer) noexcept {
  for (const KnownWriter& known : known_writers_) {
    if (known.handle == writer) return known.id;
  }
  dds_builtintopic_endpoint_t* const endpoint = dds_get_matched_publication_data(reader_.get(), writer);
  if (endpoint == nullptr) return 0;  // it is gone: its message has no identity
  const uint64_t id = id_of_guid(endpoint->key.v);
  dds_builtintopic_free_endpoint(endpoint);
  known_writers_[next_known_] = {.handle = writer, .id = id};
  next_known_ = (next_known_ + 1) % known_writers_.size();
  return id;
}

void Reader::show(lagometer_sample& sample, uint32_t index) const noexcept {
  const dds_sample_info_t& info = infos_[index];
  sample.flags = info.valid_data ? 0 : LAGOMETER_SAMPLE_NOT_DATA;
  sample.region_count = 0;
  if (in_place_) {
    sample.adapter_data = pointers_[index];
    sample.flags |= LAGOMETER_SAMPLE_LOANED;
    if (info.valid_data)
      sample.regions[sample.region_count++] = {static_cast<uint8_t*>(pointers_[index]), type_.bytes()};
  } else if (info.valid_data) {
    sample.region_count = messages_[index]->show(sample.regions);
    if (type_.is_keyed()) sample.instance = messages_[index]->instance();
  }
  sample.writer_id = info.publication_handle;
  sample.middleware_sequence = 0;
  sample.source_time_ns = info.source_timestamp;
  sample.source_clock = LAGOMETER_CLOCK_WALL;
  sample.reception_clock = LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = 0;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  if (!in_place_) return;
  for (uint32_t index = 0; index < count; ++index)
    dds_return_loan(reader_.get(), &sample_at(samples, stride, index).adapter_data, 1);
}

void Reader::matched(lagometer_matched& out) const {
  dds_subscription_matched_status_t status;
  check(dds_get_subscription_matched_status(reader_.get(), &status), "matched writers");
  out.count = status.current_count;
  out.exact = 0;
}

void Reader::counters(lagometer_counters& out) const {
  dds_sample_lost_status_t lost;
  check(dds_get_sample_lost_status(reader_.get(), &lost), "lost samples");
  dds_sample_rejected_status_t rejected;
  check(dds_get_sample_rejected_status(reader_.get(), &rejected), "rejected samples");
  out.present = LAGOMETER_COUNTER_LOST | LAGOMETER_COUNTER_REJECTED;
  out.lost = lost.total_count;
  out.rejected = rejected.total_count;
}

// A participant's waitset only takes conditions of that participant, the library's own takes all.
Waitset::Waitset(Context&)
    : guard_(dds_create_guardcondition(DDS_CYCLONEDDS_HANDLE), "making a guard condition"),
      waitset_(dds_create_waitset(DDS_CYCLONEDDS_HANDLE), "making a waitset") {
  check(dds_waitset_attach(waitset_.get(), guard_.get(), kGuard), "attaching the guard condition");
  fired_.resize(1);
}

void Waitset::attach(const Reader& reader) {
  // enable() creates the reader's condition, so it is attached when the first wait needs it.
  readers_.push_back(&reader);
  fired_.resize(readers_.size() + 1);
}

lagometer_status Waitset::wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
  count = 0;
  for (; watched_ < readers_.size(); ++watched_) {
    const auto known_by = static_cast<dds_attach_t>(watched_ + 1);
    check(dds_waitset_attach(waitset_.get(), readers_[watched_]->condition(), known_by), "attaching a reader");
  }
  constexpr int64_t kLongest_ns = int64_t{1}
                                  << 40;  // the wait is relative in this API; one of 18 minutes is simply restarted
  const int64_t left_ns = std::clamp<int64_t>(until_ns - now_ns(), 0, kLongest_ns);
  const dds_return_t fired = dds_waitset_wait(waitset_.get(), fired_.data(), fired_.size(), left_ns);
  check(fired, "waiting");
  if (fired == 0) return LAGOMETER_TIMEOUT;
  for (const dds_attach_t known_by : std::span(fired_).first(std::min(fired_.size(), static_cast<size_t>(fired)))) {
    bool triggered = false;
    if (known_by == kGuard) {
      dds_take_guardcondition(guard_.get(), &triggered);
    } else if (count < places.size()) {
      places[count++] = static_cast<uint32_t>(known_by - 1);
    }
  }
  return LAGOMETER_OK;
}

void Waitset::trigger() noexcept { dds_set_guardcondition(guard_.get(), true); }

}  // namespace lagometer::cyclonedds
