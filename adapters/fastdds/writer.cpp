// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "guid.hpp"
#include "layer_notes.hpp"
#include "qos.hpp"

namespace lagometer::fastdds {
namespace {

// With data sharing "auto", only the segment shows whether it is in use: the writer creates it, or does without.
bool has_shared_segment(const rtps::GUID_t& writer) {
  std::ostringstream name;
  name << "/dev/shm/fast_datasharing_" << writer.guidPrefix << "_" << writer.entityId;
  std::error_code ignored;
  return std::filesystem::exists(name.str(), ignored);
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : node_(node),
      type_(*reinterpret_cast<const Type*>(config.type)),
      topic_(type_.topic_name(view(config.topic))),
      fixed_(type_.fixed()),
      keyed_(type_.instances() > 0),
      user_(config.user),
      on_event_(config.on_event),
      on_policy_(config.on_policy) {
  const dds::DataWriterQos qos = writer_qos(node.initial_writer_qos(), config.qos, node.context().settings(), type_);
  if (!fixed_) message_ = type_.make_message();
  reshape(type_.bytes_max());  // from now on there is room for every message
  dds::Topic& topic = node.context().acquire_topic(topic_, type_.name());
  dds::StatusMask mask = dds::StatusMask::publication_matched();
  if (on_event_ != nullptr) {
    mask << dds::StatusMask::offered_deadline_missed() << dds::StatusMask::offered_incompatible_qos();
  }
  writer_ = node.publisher().create_datawriter(&topic, qos, this, mask);
  if (writer_ == nullptr) {
    node.context().release_topic(topic_);
    throw Error(LAGOMETER_FAILED,
                "fastdds: the writer on topic " + topic_ + " was refused: see the lines of Fast DDS above");
  }
}

Writer::~Writer() {
  if (loan_ != nullptr) log_failure(writer_->discard_loan(loan_), "discard_loan");
  log_failure(writer_->set_listener(nullptr, dds::StatusMask::none()), "set_listener");
  log_failure(node_.publisher().delete_datawriter(writer_), "delete_datawriter");
  node_.context().release_topic(topic_);
}

void Writer::enable() {
  if (!(writer_->enable() == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_NO_RESOURCE,
                "fastdds: the writer on topic " + topic_ +
                    " could not start: see the lines of Fast DDS above; a long history of a large fixed type may not "
                    "fit into memory: lower the depth");
  }
  shares_data_ = has_shared_segment(writer_->guid());
}

void Writer::reshape(uint64_t bytes) {
  type_.check(bytes, topic_);
  region_count_ = fixed_ ? 1 : message_->shape(bytes, regions_);
  shaped_bytes_ = bytes;
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  if (bytes != shaped_bytes_) reshape(bytes);
  message.region_count = region_count_;
  message.adapter_data = nullptr;
  if (!fixed_) {
    message.origin = LAGOMETER_ORIGIN_COPIED;
    std::copy_n(regions_, region_count_, message.regions);
    return LAGOMETER_OK;
  }
  if (loan_ != nullptr) throw Error(LAGOMETER_INVALID, "fastdds: one message at a time: commit or discard the last");
  if (!(writer_->loan_sample(loan_) == ReturnCode_t::RETCODE_OK)) {
    loan_ = nullptr;
    rejected_.fetch_add(1, std::memory_order_relaxed);  // every payload of the writer's pool is waiting for its readers
    return LAGOMETER_REJECTED;
  }
  message.origin = origin_of_loan();
  message.regions[0] = {static_cast<uint8_t*>(loan_), bytes};
  return LAGOMETER_OK;
}

// The payload is always loaned, but LOANED means that nobody copies it again. Transports copy. A reader of this process
// that gets it by function call takes over the payload itself, unless the payload is shared with other processes: then
// 2.9 copies it.
uint32_t Writer::origin_of_loan() const noexcept {
  const bool direct = settings().intra_process != IntraProcess::kOff;
  const bool near = direct && near_readers_.load(std::memory_order_relaxed) > 0;
  const bool far = !direct || far_readers_.load(std::memory_order_relaxed) > 0;
  const bool foreign = foreign_readers_.load(std::memory_order_relaxed) > 0;
  const bool uncopied = !foreign && (shares_data_ ? !near : near && !far);
  return uncopied ? LAGOMETER_ORIGIN_LOANED : LAGOMETER_ORIGIN_NATIVE;
}

lagometer_status Writer::commit(lagometer_message& message) {
  if (keyed_) message_->set_key(message.instance);
  if (!fixed_) return publish(message_.get(), message);
  // The loan ends with the write: a reply may arrive, and be answered, before write() returns.
  void* sample = std::exchange(loan_, nullptr);
  const lagometer_status status = publish(sample, message);
  if (status == LAGOMETER_REJECTED) log_failure(writer_->discard_loan(sample), "discard_loan");
  return status;
}

lagometer_status Writer::publish(void* sample, lagometer_message& message) {
  if (stamped_layers_ != 0 && has_stamps(message)) return publish_stamped(sample, message);
  const ReturnCode_t code = writer_->write(sample, dds::HANDLE_NIL);
  if (code == ReturnCode_t::RETCODE_OK) return LAGOMETER_OK;
  if (code == ReturnCode_t::RETCODE_TIMEOUT || code == ReturnCode_t::RETCODE_OUT_OF_RESOURCES) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  throw Error(LAGOMETER_FAILED,
              "fastdds: write on topic " + topic_ + " failed with return code " + std::to_string(code()));
}

// This write() is the one that returns the sequence. It does not say why it failed. Errors other than "full" or "late"
// can't happen to an enabled writer with samples of its type, so every failure counts as rejected.
lagometer_status Writer::publish_stamped(void* sample, lagometer_message& message) {
  rtps::WriteParams parameters;
  const LayerNotes notes(LAGOMETER_LAYER_SERIALISE, (stamped_layers_ & LAGOMETER_STAMPS_SERIALISE) != 0);
  const lagometer_stamp begin = stamp_of(LAGOMETER_LAYER_WRITE);
  const bool sent = writer_->write(sample, parameters);
  const lagometer_stamp end = stamp_of(LAGOMETER_LAYER_WRITE | LAGOMETER_LAYER_END);
  message.stamps.count = 0;
  if (!sent) {
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  const rtps::SampleIdentity& identity = parameters.sample_identity();
  message.key = {.writer_id = writer_id(identity.writer_guid()),
                 .middleware_sequence = identity.sequence_number().to64long(),
                 .source_time_ns = 0};
  add_stamps(message.stamps, (stamped_layers_ & LAGOMETER_STAMPS_WRITE) != 0, begin, notes.find(sample), end);
  return LAGOMETER_OK;
}

void Writer::discard(lagometer_message&) {
  if (loan_ == nullptr) return;
  log_failure(writer_->discard_loan(loan_), "discard_loan");
  loan_ = nullptr;
}

void Writer::matched(lagometer_matched& out) {
  dds::PublicationMatchedStatus status;
  if (writer_->get_publication_matched_status(status) == ReturnCode_t::RETCODE_OK) {
    out.count = static_cast<uint32_t>(status.current_count);
  } else {
    out.count = 0;  // not enabled yet
  }
  out.exact = 0;
}

void Writer::counters(lagometer_counters& out) {
  out.present = LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
  dds::OfferedDeadlineMissedStatus deadline;
  if (writer_->get_offered_deadline_missed_status(deadline) == ReturnCode_t::RETCODE_OK) {
    out.present |= LAGOMETER_COUNTER_DEADLINE;
    out.deadline_missed = deadline.total_count;
  }
}

void Writer::on_publication_matched(dds::DataWriter* writer, const dds::PublicationMatchedStatus& status) {
  const rtps::GUID_t reader = rtps::iHandle2GUID(status.last_subscription_handle);
  const rtps::GUID_t& own = writer->guid();
  // The first two octets identify the vendor.
  const bool foreign = !std::equal(own.guidPrefix.value, own.guidPrefix.value + 2, reader.guidPrefix.value);
  auto& readers = foreign ? foreign_readers_ : reader.is_on_same_process_as(own) ? near_readers_ : far_readers_;
  readers.fetch_add(status.current_count_change, std::memory_order_relaxed);
  if (on_event_ != nullptr) on_event_(user_, LAGOMETER_EVENT_MATCHED, static_cast<uint64_t>(status.current_count));
}

void Writer::on_offered_deadline_missed(dds::DataWriter*, const dds::OfferedDeadlineMissedStatus& status) {
  on_event_(user_, LAGOMETER_EVENT_DEADLINE_MISSED, status.total_count);
}

void Writer::on_offered_incompatible_qos(dds::DataWriter*, const dds::OfferedIncompatibleQosStatus& status) {
  if (on_policy_ != nullptr) on_policy_(user_, status.last_policy_id);  // same numbers as in DDS
  on_event_(user_, LAGOMETER_EVENT_INCOMPATIBLE_QOS, status.total_count);
}

}  // namespace lagometer::fastdds
