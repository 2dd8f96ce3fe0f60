// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "adapter_host.hpp"
#include "clock.hpp"
#include "guard.hpp"
#include "lagometer/stamps.h"
#include "plan_bounds.hpp"

namespace lagometer::engine {

void FailureFlag::raise(const char* what) noexcept {
  int none = 0;
  if (!state_.compare_exchange_strong(none, 1)) return;
  const Lent lent;
  const std::string text = std::string(what) + ": " + abi_host::last_reason();
  std::copy_n(text.data(), std::min(text.size(), text_.size() - 1), text_.data());
  state_.store(2, std::memory_order_release);
}

std::string FailureFlag::text() const { return state_.load(std::memory_order_acquire) == 2 ? text_.data() : ""; }

namespace {

CpuSource cpu_source() noexcept {
  static const CpuSource source = best_cpu_source();
  return source;
}

/// `mark`: its low byte is written, see touch_write().
inline void mark_lines(lagometer_message& message, uint64_t mark) noexcept {
  touch_write(message.regions[0].data, message.regions[0].size, kCacheLineBytes, mark);
  for (uint32_t region = 1; region < message.region_count; ++region) {
    touch_write(message.regions[region].data, message.regions[region].size, 0, mark);
  }
}

/// The key of a keyed topic's message: the same on both sides, and evenly distributed.
constexpr uint32_t instance_of(uint64_t sequence, uint32_t instances) noexcept {
  return static_cast<uint32_t>(sequence % instances);
}

/// The time from a callback's begin to its publishing, as stored in a record: at least 1, since 0 means "not known".
uint32_t callback_ns(int64_t begun_ns, int64_t publish_ns) noexcept {
  constexpr int64_t kMost_ns = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::clamp<int64_t>(publish_ns - begun_ns, 1, kMost_ns));
}

/// One record for each stamp of a list, or one for the key alone if there are no stamps.
void add_stamps(const StampLane& lane, StampRecord record, const lagometer_stamp_list& stamps) noexcept {
  const uint32_t count = std::min(stamps.count, LAGOMETER_STAMPS_MAX);
  if (count == 0) lane.add(record);
  for (uint32_t index = 0; index < count; ++index) {
    const lagometer_stamp& stamp = stamps.at[index];
    if (stamp.time_ns == 0) continue;
    record.time_ns = stamp.time_ns;
    record.layer = stamp.layer;
    record.cpu = static_cast<uint16_t>(stamp.cpu);
    lane.add(record);
  }
}

}  // namespace

void Output::record_into(const SentLane& sent, const CauseLane& causes) noexcept {
  sent_ = sent;
  causes_ = causes;
  sent_.state() = {.table = &table_, .writer = writer_, .cpu_source = cpu_source()};
}

Output::Sent Output::fill_and_commit(const Envelope& envelope, uint64_t bytes,
                                     const lagometer_sample* request) noexcept {
  SendState& state = sent_.state();
  const CpuSource cpu = state.cpu_source;
  Sent sent{.sequence = envelope.sequence};
  lagometer_message message;
  // The rest is only for stamps; without them nobody touches it.
  std::memset(&message, 0, stamps_.wanted() ? sizeof message : LAGOMETER_MESSAGE_SIZE_1_0);
  message.size = sizeof message;
  message.abi_version = LAGOMETER_ABI_VERSION;
  {
    const Lent lent;
    if (services_ != nullptr) [[unlikely]] {
      sent.status = services_->answer(state.writer, request);
      if (sent.status != LAGOMETER_OK) return sent;
    }
    sent.status = state.table->borrow(state.writer, bytes, &message);
  }
  if (sent.status != LAGOMETER_OK) return sent;
  state.origin = message.origin;
  if (content_ != nullptr) content_->fill(message, envelope.sequence);
  if (bytes < type_.envelope_bytes()) [[unlikely]] {
    write_small_envelope(message.regions[0].data, envelope, writes_text_);
  } else if (writes_text_) [[unlikely]] {
    write_text(message, envelope);
  } else {
    if (touch_write_) mark_lines(message, envelope.sequence);
    write_envelope(message.regions[0].data, envelope);
  }
  if (plan_.qos.instances > 0) [[unlikely]]
    message.instance = instance_of(envelope.sequence, plan_.qos.instances);
  sent.publish = stamp_now(cpu);
  {
    const Lent lent;
    sent.status = state.table->commit(state.writer, &message);
  }
  sent.published = stamp_now(cpu);
  if (stamps_.wanted() && envelope.kind == static_cast<uint8_t>(MessageKind::data)) [[unlikely]]
    record_stamps(message, sent);
  return sent;
}

void Output::record_stamps(const lagometer_message& message, const Sent& sent) noexcept {
  if (sent.status != LAGOMETER_OK) return;
  add_stamps(stamps_,
             {.sequence = sent.sequence,
              .writer_id = message.key.writer_id,
              .middleware_sequence = message.key.middleware_sequence,
              .source_time_ns = message.key.source_time_ns,
              .time_ns = sent.publish.time_ns,
              .stream = plan_.stream,
              .layer = LAGOMETER_LAYER_NONE,
              .cpu = sent.publish.cpu,
              .zeros = {}},
             message.stamps);
}

void Output::write_text(lagometer_message& message, const Envelope& envelope) const noexcept {
  if (touch_write_) mark_lines(message, as_character(envelope.sequence));
  write_text_envelope(message.regions[0].data, envelope);
}

void Output::publish(const Occasion& occasion) noexcept {
  SendState& state = sent_.state();
  const Envelope envelope{.kind = static_cast<uint8_t>(MessageKind::data),
                          .stream = plan_.stream,
                          .sequence = occasion.echo.value_or(state.next_sequence)};
  ++state.next_sequence;
  state.last_sequence = envelope.sequence;  // before it leaves: the reply may come on another thread
  Sent sent = fill_and_commit(envelope, size_of(envelope.sequence), occasion.request);
  stamping_path();
  if (sent.status == LAGOMETER_OK) [[likely]] {
    ++sent_.state().sent;  // looked up again: the message may have come back already, and more been sent
  } else {
    if (sent.status < 0) failure_.raise("sending");
    ++rejected_count_;
    if (sent.publish.time_ns == 0) sent.publish.time_ns = now_ns();  // rejected before there was anything to send
  }
  record(sent, occasion);
}

void Output::record(const Sent& sent, const Occasion& occasion) noexcept {
  SentRecord* const record = sent_.claim();
  if (record == nullptr) return;
  record->sequence = sent.sequence;
  record->intended_ns = occasion.intended_ns;
  record->publish_ns = sent.publish.time_ns;
  record->published_ns = sent.published.time_ns;
  record->cpu_publish = sent.publish.cpu;
  record->cpu_published = sent.published.cpu;
  if (sent.status != LAGOMETER_OK) {
    record->status = static_cast<uint32_t>(sent.status < 0 ? SendStatus::failed : SendStatus::rejected);
  }
  if (occasion.begun_ns != 0) record->callback_ns = callback_ns(occasion.begun_ns, sent.publish.time_ns);
  record_causes(*record, occasion.causes);
  sent_.keep();
}

void Output::record_causes(SentRecord& record, std::span<const Cause> causes) noexcept {
  record.cause_count = static_cast<uint32_t>(causes.size());
  if (causes.empty()) return;
  record.cause_stream = causes.front().stream;
  record.cause_sequence = causes.front().sequence;
  if (causes.size() == 1) return;
  record.first_cause = static_cast<uint32_t>(causes_.count());
  for (const Cause& cause : causes) {
    CauseRecord* const claimed = causes_.claim();
    if (claimed == nullptr) return;
    *claimed = {.sequence = cause.sequence, .stream = cause.stream, .zero = 0};
    causes_.keep();
  }
}

bool Output::meets_another() {
  lagometer_matched matched{.size = sizeof matched, .abi_version = LAGOMETER_ABI_VERSION, .count = 0, .exact = 0};
  if (table_.writer_matched(writer_, &matched) < 0) failure_.raise("counting matched readers");
  return std::exchange(readers_, matched.count) < matched.count;
}

void Output::send_probe(const lagometer_sample* request) {
  const Envelope envelope{.kind = static_cast<uint8_t>(MessageKind::probe),
                          .stream = plan_.stream,
                          .sequence = static_cast<uint64_t>(now_ns())};
  if (fill_and_commit(envelope, type_.probe_bytes(plan_.payload_bytes), request).status < 0)
    failure_.raise("sending a probe");
}

void Input::record_into(const ReceivedLane& received) noexcept {
  received_ = received;
  received_.state() = {.table = &table_, .reader = reader_, .cpu_source = cpu_source()};
}

Input::Input(const ReaderPlan& plan, uint32_t index, const lagometer_adapter_table& table, TouchPlan touch,
             FailureFlag& failure)
    : plan_(plan),
      reads_text_(payload_type(plan.type).text_envelope),
      envelope_bytes_(payload_type(plan.type).envelope_bytes()),
      may_be_small_(plan.sizes_vary || plan.payload_bytes < envelope_bytes_),
      index_(index),
      table_(table),
      touch_(touch),
      failure_(failure),
      heard_(plan.streams.size()),
      matched_(plan.streams.size()) {
  for (lagometer_sample& sample : batch_) {
    sample.size = sizeof sample;
    sample.abi_version = LAGOMETER_ABI_VERSION;
  }
}

void Input::keep_stamps(const lagometer_sample& sample, const Envelope& envelope, int64_t taken_ns) noexcept {
  add_stamps(stamps_,
             {.sequence = envelope.sequence,
              .writer_id = sample.writer_id,
              .middleware_sequence = sample.middleware_sequence,
              .source_time_ns = sample.source_time_ns,
              .time_ns = taken_ns,
              .stream = envelope.stream,
              .layer = LAGOMETER_LAYER_NONE,
              .cpu = kCpuUnknown,
              .zeros = {}},
             sample.stamps);
}

std::span<lagometer_sample> Input::take(uint32_t max) noexcept {
  taken_ = 0;
  lagometer_status status;
  const ReceiveState& state = received_.state();
  {
    const Lent lent;
    status = state.table->take(state.reader, batch_.data(), sizeof(lagometer_sample), std::min(max, kBatch), &taken_);
  }
  if (status < 0) [[unlikely]] {
    failure_.raise("taking");
    taken_ = 0;
  }
  return {batch_.data(), taken_};
}

void Input::release() noexcept {
  if (taken_ == 0) return;
  const ReceiveState& state = received_.state();
  const Lent lent;
  state.table->release(state.reader, batch_.data(), sizeof(lagometer_sample), taken_);
}

std::optional<Envelope> Input::open(const lagometer_sample& sample) noexcept {
  if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) != 0) return std::nullopt;
  if (sample.region_count > 0 && sample.regions[0].size >= envelope_bytes_) {
    const uint8_t* const data = sample.regions[0].data;
    const Envelope envelope = reads_text_ ? read_text_envelope(data) : read_envelope(data);
    if (envelope.magic == kEnvelopeMagic && envelope.version == kEnvelopeVersion) return envelope;
  } else if (may_be_small_ && sample.region_count > 0 && sample.regions[0].size >= SmallEnvelope::kBytes) {
    return open_small(sample.regions[0].data);
  }
  ++corrupted_count_;
  return std::nullopt;
}

std::optional<Envelope> Input::open_small(const uint8_t* data) noexcept {
  const SmallEnvelope small = read_small_envelope(data, reads_text_);
  if (plan_.streams.size() != 1) {  // whose message it is, can't be told
    ++corrupted_count_;
    return std::nullopt;
  }
  Envelope envelope{.kind = static_cast<uint8_t>(small.probe ? MessageKind::probe : MessageKind::data),
                    .stream = plan_.streams.front()};
  if (small.probe) {
    envelope.sequence = uint64_t{small.low} << SmallEnvelope::kTimeShift;
    return envelope;
  }
  envelope.sequence = nearest_sequence(small.low, small_expected_, reads_text_);
  const uint64_t away =
      envelope.sequence > small_expected_ ? envelope.sequence - small_expected_ : small_expected_ - envelope.sequence;
  if (away > SmallEnvelope::span(reads_text_) / 4) {
    ++corrupted_count_;
    return std::nullopt;
  }
  small_expected_ = std::max(small_expected_, envelope.sequence + 1);
  return envelope;
}

void Input::note_probe(uint32_t stream, uint64_t sent_ns, int64_t taken_ns) noexcept {
  for (size_t index = 0; index < plan_.streams.size(); ++index) {
    if (plan_.streams[index] != stream) continue;
    Heard& first = heard_[index];
    if (first.taken_ns == 0) first = {.sent_ns = sent_ns, .taken_ns = taken_ns};
    if (plan_.shares_clock && !may_be_small_) {
      if (static_cast<int64_t>(sent_ns) > first.taken_ns) matched_[index].store(true, std::memory_order_release);
      continue;
    }
    auto sent_later_ns = static_cast<int64_t>(sent_ns - first.sent_ns);
    // In a small payload only the low bits are known: the shorter distance tells which of the two was sent first.
    const auto round_ns = static_cast<int64_t>(SmallEnvelope::span(reads_text_) << SmallEnvelope::kTimeShift);
    if (may_be_small_ && sent_later_ns < -round_ns / 2) sent_later_ns += round_ns;
    if (may_be_small_ && sent_later_ns >= round_ns / 2) sent_later_ns -= round_ns;
    if (sent_later_ns >= kInFlightMax_ns && taken_ns - first.taken_ns >= kInFlightMax_ns)
      matched_[index].store(true, std::memory_order_release);
  }
}

bool Input::read_payload(const lagometer_sample& sample, const Envelope& envelope, uint64_t& bytes) noexcept {
  ReceiveState& state = received_.state();
  ++state.received;
  bytes = 0;
  for (uint32_t region = 0; region < sample.region_count; ++region) {
    bytes += sample.regions[region].size;
    if (touch_.read) state.byte_sum += touch_read(sample.regions[region].data, sample.regions[region].size);
  }
  bool whole = plan_.sizes_vary ? bytes <= plan_.payload_bytes : bytes == plan_.payload_bytes;
  if (whole && touch_.read && touch_.write) whole = is_marked(sample, envelope.sequence);
  if (plan_.qos.instances > 0) [[unlikely]]
    whole = whole && sample.instance == instance_of(envelope.sequence, plan_.qos.instances);
  if (!whole) ++corrupted_count_;
  return whole;
}

// The mark of the last line. If there are several regions, the sender's may differ, and with them the lines. But the
// second region of a type that begins with text is the same on both sides.
bool Input::is_marked(const lagometer_sample& sample, uint64_t sequence) const noexcept {
  const lagometer_region& last = sample.regions[sample.region_count - 1];
  if (sample.region_count == 1 ? last.size < 2 * kCacheLineBytes : !reads_text_ || last.size == 0) return true;
  const uint8_t mark = reads_text_ ? as_character(sequence) : static_cast<uint8_t>(sequence);
  return last.data[(last.size - 1) / kCacheLineBytes * kCacheLineBytes] == mark;
}

std::vector<uint32_t> Input::missing() const {
  std::vector<uint32_t> streams;
  for (size_t index = 0; index < matched_.size(); ++index) {
    if (!matched_[index].load(std::memory_order_acquire)) streams.push_back(plan_.streams[index]);
  }
  return streams;
}

}  // namespace lagometer::engine
