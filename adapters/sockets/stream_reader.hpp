// SPDX-License-Identifier: Apache-2.0
// A subscriber on stream sockets: one connection per publisher, frames of a 4-byte length and the payload.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "aligned_buffer.hpp"
#include "context.hpp"
#include "stream_family.hpp"

namespace lagometer::sockets {

using FrameLength = uint32_t;
/// Where a frame's length is in a buffer, so that the payload after it begins a cache line.
inline constexpr uint64_t frame_start = line_bytes - sizeof(FrameLength);

/// One publisher's connection, and the buffer that holds its frames.
class StreamSource {
 public:
  /// Lifecycle: the context's thread makes a free one live; the taking thread ends it and, when all samples are back,
  /// frees it.
  enum class State : uint8_t { free, live, ended };

  [[nodiscard]] State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// [thread: the context's]
  void open(Descriptor socket, const PayloadType& type);
  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

  /// The result of fill().
  enum class Fill : uint8_t { nothing, some, ended };
  /// Reads once from the socket. `woken_ns` is when the listener's thread woke, 0 with other dispatches.
  Fill fill(int64_t woken_ns);
  [[nodiscard]] bool has_frame() const noexcept;
  /// Returns the next frame, which stays in place until give_back(). Needs has_frame().
  void show_frame(lagometer_sample& sample) noexcept;
  void give_back() noexcept;
  /// Errors: a frame length that the type does not allow.
  void check_frame(const PayloadType& type) const;
  void end(EpollSet* set) noexcept;

  std::atomic<bool> ready{false};  // readable, according to the last wait
  std::atomic<bool> woken{false};  // readable, and nothing read since the listener's thread woke
  bool counted_as_left = false;    // by the reader, among the sources with frames read but not returned

 private:
  [[nodiscard]] uint64_t filled() const noexcept { return end_ - begin_; }
  [[nodiscard]] FrameLength frame_length() const noexcept;

  std::atomic<State> state_{State::free};
  Descriptor socket_;
  AlignedBuffer buffer_;
  uint64_t begin_ = frame_start;  // of what was read but not returned yet
  uint64_t end_ = frame_start;
  uint32_t shown_ = 0;      // frames returned and not given back
  int64_t noticed_ns_ = 0;  // when the first bytes of the next frame were noticed; 0: not yet
  int64_t last_fill_ns_ = 0;
};

class StreamReader final : public Source {
 public:
  StreamReader(Node& node, const lagometer_endpoint_config& config);
  StreamReader(const StreamReader&) = delete;
  StreamReader& operator=(const StreamReader&) = delete;
  ~StreamReader() override;
  void enable();
  /// A waitset serves this reader from now on. Call it before enable.
  void attach(std::shared_ptr<EpollSet> waitset);

  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] std::string describe() const;

  void readable(uint32_t tag) noexcept override;
  void deliver(int64_t woken_ns, uint32_t cpu) noexcept override;
  [[nodiscard]] bool buffered() const noexcept override { return buffered_.load(std::memory_order_acquire); }

 private:
  static constexpr uint32_t sources_max = 256;

  void accept_all();
  /// Whether the buffer holds a whole frame, after reading as much as needed and available.
  [[nodiscard]] bool fetch(StreamSource& source, bool only_ready);
  void count_left(StreamSource& source) noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  std::optional<Listening> door_;
  std::atomic<bool> enabled_{false};  // publishes what enable() wrote to the context's thread
  BufferSizes default_sizes_;
  Announced announcement_;
  std::shared_ptr<EpollSet> door_set_;  // the context's
  uint32_t door_slot_ = 0;
  std::shared_ptr<EpollSet> data_set_;  // the waitset's or the context's; none when polling
  uint32_t data_slot_ = 0;
  std::unique_ptr<std::array<StreamSource, sources_max>> sources_ =
      std::make_unique<std::array<StreamSource, sources_max>>();
  std::atomic<uint32_t> sources_end_{0};
  uint32_t next_source_ = 0;
  uint32_t left_count_ = 0;  // sources with frames read but not returned
  std::atomic<bool> buffered_{false};
  std::atomic<bool> marks_fresh_{false};  // a wait has just said which sources are readable
  bool news_ = false;                     // readable since the last deliver(); used by the context's thread only
  bool listening_ = false;                // inside the listener; likewise
  int64_t woken_ns_ = 0;
  uint32_t woken_cpu_ = 0;
  uint64_t taken_total_ = 0;
};

}  // namespace lagometer::sockets
