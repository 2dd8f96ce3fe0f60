// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <algorithm>

#include "guid.hpp"
#include "layer_notes.hpp"
#include "qos.hpp"

namespace lagometer::fastdds {
namespace {

// No measured middleware fragments a smaller payload.
constexpr uint64_t kUnfragmentedBytes = 1024;

dds::StatusMask listened(uint32_t dispatch, bool events) {
  dds::StatusMask mask = dds::StatusMask::none();
  if (dispatch == LAGOMETER_DISPATCH_LISTENER) mask << dds::StatusMask::data_available();
  if (events) {
    mask << dds::StatusMask::subscription_matched() << dds::StatusMask::requested_deadline_missed()
         << dds::StatusMask::requested_incompatible_qos() << dds::StatusMask::sample_lost();
  }
  return mask;
}

// A sample created by a registered type.
std::shared_ptr<void> sample_of_type(const dds::TypeSupport& type) {
  return {type->createData(), [type](void* sample) { type->deleteData(sample); }};
}

}  // namespace

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : node_(node),
      topic_(reinterpret_cast<const Type*>(config.type)->topic_name(view(config.topic))),
      fixed_(reinterpret_cast<const Type*>(config.type)->fixed()),
      bytes_max_(reinterpret_cast<const Type*>(config.type)->bytes_max()),
      user_(config.user),
      on_data_(config.on_data),
      on_event_(config.on_event),
      on_policy_(config.on_policy) {
  if (config.dispatch == LAGOMETER_DISPATCH_LISTENER && on_data_ == nullptr) {
    throw Error(LAGOMETER_INVALID, "fastdds: a reader that dispatches by listener needs on_data");
  }
  const Type& type = *reinterpret_cast<const Type*>(config.type);
  if (bytes_max_ > kUnfragmentedBytes) scratch_ = sample_of_type(node.context().participant().find_type(type.name()));
  const dds::DataReaderQos qos = reader_qos(node.initial_reader_qos(), config.qos, node.context().settings(), type);
  dds::Topic& topic = node.context().acquire_topic(topic_, type.name());
  const dds::StatusMask mask = listened(config.dispatch, on_event_ != nullptr);
  reader_ = node.subscriber().create_datareader(&topic, qos, mask.any() ? this : nullptr, mask);
  if (reader_ == nullptr) {
    node.context().release_topic(topic_);
    throw Error(LAGOMETER_FAILED,
                "fastdds: the reader on topic " + topic_ + " was refused: see the lines of Fast DDS above");
  }
  reader_->get_statuscondition().set_enabled_statuses(dds::StatusMask::data_available());
}

Reader::~Reader() {
  log_failure(reader_->set_listener(nullptr, dds::StatusMask::none()), "set_listener");
  // Callbacks run under the reader's lock, which this call takes: afterwards none is running and none will start.
  static_cast<void>(reader_->get_unread_count());
  for (Loan& loan : loans_) {
    if (loan.out) give_back(loan);
  }
  log_failure(node_.subscriber().delete_datareader(reader_), "delete_datareader");
  node_.context().release_topic(topic_);
}

void Reader::enable() {
  if (!(reader_->enable() == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_NO_RESOURCE,
                "fastdds: the reader on topic " + topic_ + " could not start: see the lines of Fast DDS above");
  }
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  const auto limit = static_cast<uint32_t>(reader_->get_qos().reader_resource_limits().max_samples_per_read);
  const uint32_t most = std::min({max, limit, static_cast<uint32_t>(loans_.size())});
  if (scratch_ == nullptr) {
    if (most > 0) taken = take_once(samples, stride, 0, most);
  } else {
    while (taken < most) {
      drop_stale_sample();
      if (take_once(samples, stride, taken, 1) == 0) break;
      ++taken;
    }
  }
  full_take_.store(most > 0 && taken == most, std::memory_order_relaxed);
  return LAGOMETER_OK;
}

// By sequence, not sample by sample: if the history is empty, Fast DDS 2.9 returns from take_next_sample() before it
// clears the condition, and a waitset would then spin.
uint32_t Reader::take_once(lagometer_sample* samples, uint32_t stride, uint32_t begin, uint32_t most) {
  Loan& loan = free_loan();
  const bool stamped = stamped_layers_ != 0 && most > 0 && has_stamps(sample_at(samples, stride, begin));
  if (stamped) return take_stamped(loan, samples, stride, begin, most);
  if (!take_into(loan, most)) return 0;
  return show_all(loan, samples, stride, begin);
}

// Like take_once(), plus what stamping needs.
uint32_t Reader::take_stamped(Loan& loan, lagometer_sample* samples, uint32_t stride, uint32_t begin, uint32_t most) {
  const LayerNotes notes(LAGOMETER_LAYER_DESERIALISE, (stamped_layers_ & LAGOMETER_STAMPS_DESERIALISE) != 0);
  const lagometer_stamp entered = stamp_of(LAGOMETER_LAYER_TAKE);
  if (!take_into(loan, most)) return 0;
  const lagometer_stamp left = stamp_of(LAGOMETER_LAYER_TAKE | LAGOMETER_LAYER_END);
  const uint32_t count = show_all(loan, samples, stride, begin);
  const bool take = (stamped_layers_ & LAGOMETER_STAMPS_TAKE) != 0;
  for (uint32_t index = 0; index < count; ++index) {
    const void* const data = loan.samples.buffer()[static_cast<int32_t>(index)];
    add_stamps(sample_at(samples, stride, begin + index).stamps, take, entered, notes.find(data), left);
  }
  return count;
}

bool Reader::take_into(Loan& loan, uint32_t most) {
  const ReturnCode_t code = reader_->take(loan.samples, loan.infos, static_cast<int32_t>(most));
  if (code == ReturnCode_t::RETCODE_NO_DATA) return false;
  if (!(code == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED,
                "fastdds: take on topic " + topic_ + " failed with return code " + std::to_string(code()));
  }
  loan.out = true;
  return true;
}

uint32_t Reader::show_all(Loan& loan, lagometer_sample* samples, uint32_t stride, uint32_t begin) {
  const auto count = static_cast<uint32_t>(loan.infos.length());
  for (uint32_t index = 0; index < count; ++index) {
    lagometer_sample& sample = sample_at(samples, stride, begin + index);
    show(loan, static_cast<int32_t>(index), sample);
    sample.adapter_data = &loan;
  }
  return count;
}

// In Fast DDS 2.9, if only some fragments of a sample have arrived, a GAP for it frees the sample but leaves it in the
// reader's queue. A take() with a loan would follow its null pointer and end the process. Such a sample has no writer.
// A read with a copy finds nothing to decode in it and removes it.
void Reader::drop_stale_sample() {
  dds::SampleInfo info;
  while (reader_->get_first_untaken_info(&info) == ReturnCode_t::RETCODE_OK &&
         info.sample_identity.writer_guid() == rtps::GUID_t::unknown()) {
    if (reader_->read_next_sample(scratch_.get(), &info) == ReturnCode_t::RETCODE_NO_DATA) return;
  }
}

void Reader::show(const Loan& loan, int32_t index, lagometer_sample& sample) const {
  const dds::SampleInfo& info = loan.infos[index];
  void* data = loan.samples.buffer()[index];
  sample.flags = fixed_ ? LAGOMETER_SAMPLE_LOANED : 0;
  sample.region_count = 1;
  sample.writer_id = writer_id(info.sample_identity.writer_guid());
  sample.middleware_sequence = info.sample_identity.sequence_number().to64long();
  sample.source_time_ns = info.source_timestamp.to_ns();
  sample.source_clock = LAGOMETER_CLOCK_WALL;
  sample.reception_time_ns = info.reception_timestamp.to_ns();
  sample.reception_clock = LAGOMETER_CLOCK_WALL;
  sample.signalled_ns = 0;
  sample.signalled_cpu = 0;
  // A writer that shares its data may have reused the memory already: such a sample is no longer data.
  if (!info.valid_data || (fixed_ && !reader_->is_sample_valid(data, &info))) {
    sample.flags = LAGOMETER_SAMPLE_NOT_DATA;
    sample.region_count = 0;
  } else if (fixed_) {
    sample.regions[0] = {static_cast<uint8_t*>(data), bytes_max_};
  } else {
    sample.region_count = static_cast<Message*>(data)->show(sample.regions);
    if (LAGOMETER_HAS(&sample, instance)) sample.instance = static_cast<Message*>(data)->key();
  }
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) {
  for (uint32_t index = 0; index < count; ++index) {
    Loan& loan = *static_cast<Loan*>(sample_at(samples, stride, index).adapter_data);
    if (loan.out) give_back(loan);
  }
}

Reader::Loan& Reader::free_loan() {
  const auto found = std::find_if(loans_.begin(), loans_.end(), [](const Loan& loan) { return !loan.out; });
  if (found == loans_.end()) {
    throw Error(LAGOMETER_NO_RESOURCE, "fastdds: at most 32 takes of one reader can be under way: release them");
  }
  return *found;
}

void Reader::give_back(Loan& loan) {
  log_failure(reader_->return_loan(loan.samples, loan.infos), "return_loan");
  loan.out = false;
}

bool Reader::has_left_over() const noexcept {
  return full_take_.load(std::memory_order_relaxed) && reader_->get_unread_count() > 0;
}

void Reader::matched(lagometer_matched& out) {
  dds::SubscriptionMatchedStatus status;
  if (reader_->get_subscription_matched_status(status) == ReturnCode_t::RETCODE_OK) {
    out.count = static_cast<uint32_t>(status.current_count);
  } else {
    out.count = 0;  // not enabled yet
  }
  out.exact = 0;
}

void Reader::counters(lagometer_counters& out) {
  out.present = 0;
  dds::SampleLostStatus lost;
  if (reader_->get_sample_lost_status(lost) == ReturnCode_t::RETCODE_OK) {
    out.present |= LAGOMETER_COUNTER_LOST;
    out.lost = static_cast<uint64_t>(lost.total_count);
  }
  dds::SampleRejectedStatus rejected;
  if (reader_->get_sample_rejected_status(rejected) == ReturnCode_t::RETCODE_OK) {
    out.present |= LAGOMETER_COUNTER_REJECTED;
    out.rejected = static_cast<uint64_t>(rejected.total_count);
  }
  dds::RequestedDeadlineMissedStatus deadline;
  if (reader_->get_requested_deadline_missed_status(deadline) == ReturnCode_t::RETCODE_OK) {
    out.present |= LAGOMETER_COUNTER_DEADLINE;
    out.deadline_missed = deadline.total_count;
  }
}

void Reader::on_data_available(dds::DataReader*) { on_data_(user_); }

void Reader::on_subscription_matched(dds::DataReader*, const dds::SubscriptionMatchedStatus& status) {
  on_event_(user_, LAGOMETER_EVENT_MATCHED, static_cast<uint64_t>(status.current_count));
}

void Reader::on_requested_deadline_missed(dds::DataReader*, const dds::RequestedDeadlineMissedStatus& status) {
  on_event_(user_, LAGOMETER_EVENT_DEADLINE_MISSED, status.total_count);
}

void Reader::on_requested_incompatible_qos(dds::DataReader*, const dds::RequestedIncompatibleQosStatus& status) {
  if (on_policy_ != nullptr) on_policy_(user_, status.last_policy_id);  // same numbers as in DDS
  on_event_(user_, LAGOMETER_EVENT_INCOMPATIBLE_QOS, status.total_count);
}

void Reader::on_sample_lost(dds::DataReader*, const dds::SampleLostStatus& status) {
  on_event_(user_, LAGOMETER_EVENT_LOST, static_cast<uint64_t>(status.total_count));
}

}  // namespace lagometer::fastdds
