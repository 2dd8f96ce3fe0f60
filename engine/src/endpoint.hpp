// SPDX-License-Identifier: Apache-2.0
// A writer and a reader as the engine uses them: the adapter's object, and what is counted and recorded about it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "content.hpp"
#include "envelope.hpp"
#include "lagometer/adapter.h"
#include "lagometer/services.h"
#include "payload_type.hpp"
#include "plan.hpp"
#include "recorder.hpp"

namespace lagometer::engine {

struct Cause {
  uint32_t stream = 0;
  uint64_t sequence = 0;
};

/// Set by any thread on the first failure of a call between warm-up and drain; read by the main thread.
class FailureFlag {
 public:
  void raise(const char* what) noexcept;
  [[nodiscard]] std::string text() const;

 private:
  std::atomic<int> state_{0};  // 0 none, 1 being written, 2 readable
  std::array<char, 512> text_{};
};

/// One publisher on one topic. Used by one thread at a time.
class Output {
 public:
  Output(const WriterPlan& plan, const lagometer_adapter_table& table, TouchPlan touch, FailureFlag& failure)
      : plan_(plan),
        type_(payload_type(plan.type)),
        table_(table),
        touch_write_(touch.write),
        writes_text_(type_.text_envelope),
        failure_(failure) {}

  void attach(lagometer_writer* writer) noexcept { writer_ = writer; }
  /// It sends through another output's writer: a server's replies to several clients share one.
  void share_writer_of(const Output& other) noexcept {
    writer_ = other.writer_;
    shares_writer_ = true;
  }
  /// It belongs to a server: how to tell the adapter which request a reply answers.
  void answer_by(const lagometer_services_table& services) noexcept { services_ = &services; }
  /// What payloads are filled with; it must outlive this. Without it, payloads keep what the middleware's buffer held.
  void fill_from(const Content& content) noexcept { content_ = &content; }
  /// Called once, after attach() and before the first message: the lane also holds this writer's state.
  void record_into(const SentLane& sent, const CauseLane& causes) noexcept;
  /// Keeps the stamps that were requested from the adapter; called likewise.
  void stamp_into(const StampLane& stamps) noexcept { stamps_ = stamps; }

  /// Why and for when a message is sent. `intended_ns` 0: there was no schedule. `begun_ns`: when the callback that
  /// sends it began, 0 if not known. `echo`: the sequence to use.
  struct Occasion {
    int64_t intended_ns = 0;
    int64_t begun_ns = 0;
    std::span<const Cause> causes = {};
    std::optional<uint64_t> echo = std::nullopt;
    const lagometer_sample* request = nullptr;  // the request that a reply writer answers
  };
  /// Fills, stamps, sends and records one message.
  void publish(const Occasion& occasion) noexcept;
  /// Skips the numbers of messages that were due but are not sent: the gap in the sequence shows how many.
  void skip(uint64_t count) noexcept { sent_.state().next_sequence += count; }
  /// Sends a message that says "I am here", outside the measured phases. For reply writers: the answer to this request.
  void send_probe(const lagometer_sample* request = nullptr);
  /// Whether it sends the replies to requests of this stream.
  [[nodiscard]] bool answers(uint32_t stream) const noexcept {
    return plan_.answers.has_value() && plan_.answers->stream == stream;
  }
  /// Whether the middleware counts more readers than at the last call. Some adapters look for new readers here: unlike
  /// commit, this is not a hot path.
  [[nodiscard]] bool meets_another();

  [[nodiscard]] const WriterPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return table_; }
  [[nodiscard]] lagometer_writer* handle() const noexcept { return writer_; }
  [[nodiscard]] bool shares_writer() const noexcept { return shares_writer_; }
  [[nodiscard]] uint64_t last_sequence() const noexcept { return sent_.state().last_sequence; }
  [[nodiscard]] uint64_t sent() const noexcept { return sent_.state().sent; }
  [[nodiscard]] uint64_t rejected() const noexcept { return rejected_count_; }
  [[nodiscard]] uint32_t origin() const noexcept { return sent_.state().origin; }
  [[nodiscard]] bool recorder_full() const noexcept { return sent_.full(); }
  [[nodiscard]] uint64_t recorder_room() const noexcept { return sent_.room(); }

 private:
  /// Data about one attempt to send. Kept in registers until the message is sent, so that sending does not wait for its
  /// record.
  struct Sent {
    uint64_t sequence = 0;
    Stamp publish = {};
    Stamp published = {};
    lagometer_status status = LAGOMETER_OK;
  };

  void record(const Sent& sent, const Occasion& occasion) noexcept;
  [[nodiscard]] uint64_t size_of(uint64_t sequence) const noexcept {
    return plan_.sizes_bytes.empty() ? plan_.payload_bytes : plan_.sizes_bytes[sequence % plan_.sizes_bytes.size()];
  }
  void record_causes(SentRecord& record, std::span<const Cause> causes) noexcept;
  Sent fill_and_commit(const Envelope& envelope, uint64_t bytes, const lagometer_sample* request) noexcept;
  void record_stamps(const lagometer_message& message, const Sent& sent) noexcept;
  void write_text(lagometer_message& message, const Envelope& envelope) const noexcept;

  WriterPlan plan_;
  const PayloadType& type_;
  const lagometer_adapter_table& table_;
  bool touch_write_;
  bool writes_text_;  // envelope and marks are characters
  const Content* content_ = nullptr;
  FailureFlag& failure_;
  lagometer_writer* writer_ = nullptr;
  bool shares_writer_ = false;
  const lagometer_services_table* services_ = nullptr;  // servers only
  SentLane sent_;
  CauseLane causes_;
  StampLane stamps_;
  uint32_t readers_ = 0;  // readers that the middleware has matched
  uint64_t rejected_count_ = 0;
};

/// One subscriber on one topic. Used by one thread at a time, except for missing().
class Input {
 public:
  static constexpr uint32_t kBatch = 8;

  /// `index`: its position among the readers of its node.
  Input(const ReaderPlan& plan, uint32_t index, const lagometer_adapter_table& table, TouchPlan touch,
        FailureFlag& failure);

  void attach(lagometer_reader* reader) noexcept { reader_ = reader; }
  /// Called once, after attach() and before the first message: the lane also holds this reader's state.
  void record_into(const ReceivedLane& received) noexcept;
  /// Keeps the stamps that were requested from the adapter; called likewise.
  void stamp_into(const StampLane& stamps) noexcept { stamps_ = stamps; }

  /// Takes what is available into the batch, at most `max`. [blocks: never]
  std::span<lagometer_sample> take(uint32_t max) noexcept;
  void release() noexcept;

  /// The envelope in a sample, or nothing if it is not ours (then counted as corrupted).
  std::optional<Envelope> open(const lagometer_sample& sample) noexcept;
  /// The same for a payload that is smaller than an envelope: the stream is the only one, the sequence the nearest to
  /// the last. A sequence further away than a quarter of what its bits can distinguish counts as corrupted.
  std::optional<Envelope> open_small(const uint8_t* data) noexcept;
  /// Notes a probe: when it was sent by its sender's clock, and when it was taken by ours. A stream is matched when we
  /// get a probe that was sent after another had been heard. A reliable reader may have lost some of the probes that
  /// came while both sides were still discovering each other, and it holds back everything that follows until those are
  /// resent (Cyclone DDS: up to 200 ms). If both clocks are one, the two times are compared. Otherwise a probe was sent
  /// after that if it follows the first heard by the largest plausible time in flight, both in sending and in arrival
  /// (docs/PROTOCOL.md, "When a stream is matched").
  void note_probe(uint32_t stream, uint64_t sent_ns, int64_t taken_ns) noexcept;
  /// Reads the payload as the plan's touch says; returns false if it is not what the sender wrote. `bytes` gets its
  /// size.
  bool read_payload(const lagometer_sample& sample, const Envelope& envelope, uint64_t& bytes) noexcept;
  /// Where to record the next message; null if the lane is full. keep_record() counts it.
  ReceivedRecord* claim_record() noexcept { return received_.claim(); }
  void keep_record() noexcept { received_.keep(); }
  void record_stamps(const lagometer_sample& sample, const Envelope& envelope, int64_t taken_ns) noexcept {
    if (stamps_.wanted()) [[unlikely]]
      keep_stamps(sample, envelope, taken_ns);
  }
  [[nodiscard]] CpuSource cpu_source() const noexcept { return received_.state().cpu_source; }

  /// Streams that are not matched yet. [thread: any]
  [[nodiscard]] std::vector<uint32_t> missing() const;
  [[nodiscard]] const ReaderPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] uint32_t index() const noexcept { return index_; }
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return table_; }
  [[nodiscard]] lagometer_reader* handle() const noexcept { return reader_; }
  [[nodiscard]] uint64_t received() const noexcept { return received_.state().received; }
  [[nodiscard]] uint64_t corrupted() const noexcept { return corrupted_count_; }
  [[nodiscard]] bool recorder_full() const noexcept { return received_.full(); }

 private:
  [[nodiscard]] bool is_marked(const lagometer_sample& sample, uint64_t sequence) const noexcept;
  [[gnu::noinline]] void keep_stamps(const lagometer_sample& sample, const Envelope& envelope,
                                     int64_t taken_ns) noexcept;

  ReaderPlan plan_;
  bool reads_text_;  // envelope and marks are characters
  uint64_t envelope_bytes_;
  bool may_be_small_;            // payloads may be smaller than an envelope
  uint64_t small_expected_ = 0;  // the sequence after that of the last small payload
  uint32_t index_;
  const lagometer_adapter_table& table_;
  TouchPlan touch_;
  FailureFlag& failure_;
  lagometer_reader* reader_ = nullptr;
  ReceivedLane received_;
  StampLane stamps_;
  std::array<lagometer_sample, kBatch> batch_{};
  uint32_t taken_ = 0;
  /// The first probe heard from a stream.
  struct Heard {
    uint64_t sent_ns = 0;
    int64_t taken_ns = 0;  // 0: none yet
  };
  std::vector<Heard> heard_;                // parallel to plan_.streams
  std::vector<std::atomic<bool>> matched_;  // likewise
  uint64_t corrupted_count_ = 0;
};

}  // namespace lagometer::engine
