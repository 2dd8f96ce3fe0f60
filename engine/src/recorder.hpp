// SPDX-License-Identifier: Apache-2.0
// Where records go: memory that is sized, mapped and faulted in before anything is measured, shared with a memfd so that
// it can still be read after the worker was killed. One lane per endpoint and kind; a lane has one writing thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "records.hpp"

namespace lagometer::engine {

/// One lane's writing end: a bounds check, a 64-byte store and a count. Neither allocates nor locks nor calls the system.
template <typename Record>
class Lane {
 public:
  Lane() = default;
  Lane(LaneHeader* header, Record* records) noexcept : header_(header), records_(records) {}

  /// False if the lane is full; the record is then dropped and the lane flagged, so that the trial can't pass for whole.
  bool append(const Record& record) noexcept {
    const uint64_t at = header_->count;
    if (at >= header_->capacity) [[unlikely]] {
      header_->flags |= kLaneFull;
      return false;
    }
    records_[at] = record;
    // The next line is fetched while the node is busy with something else, not when the next message waits for it.
    __builtin_prefetch(&records_[at + 1], 1);
    __atomic_store_n(&header_->count, at + 1, __ATOMIC_RELEASE);
    return true;
  }
  [[nodiscard]] uint64_t count() const noexcept { return header_ == nullptr ? 0 : header_->count; }
  [[nodiscard]] bool full() const noexcept { return header_ != nullptr && (header_->flags & kLaneFull) != 0; }
  [[nodiscard]] bool exists() const noexcept { return header_ != nullptr; }

 private:
  LaneHeader* header_ = nullptr;
  Record* records_ = nullptr;
};

struct LaneSpecification {
  LaneKind kind;
  uint32_t node;
  uint32_t endpoint;
  uint64_t capacity;
};

class Recorder {
 public:
  /// `descriptor`: an inherited memfd, or -1 for one of its own. Throws std::runtime_error if there is no room.
  Recorder(uint32_t worker, std::span<const LaneSpecification> lanes, int descriptor);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] Lane<SentRecord> sent(size_t lane) const noexcept { return at<SentRecord>(lane); }
  [[nodiscard]] Lane<ReceivedRecord> received(size_t lane) const noexcept { return at<ReceivedRecord>(lane); }
  [[nodiscard]] Lane<CauseRecord> causes(size_t lane) const noexcept { return at<CauseRecord>(lane); }

  /// The records block with its lanes packed, as it goes out on standard output.
  [[nodiscard]] std::vector<std::byte> packed() const;

  static constexpr uint64_t kBytesMax = uint64_t{8} << 30;

 private:
  [[nodiscard]] LaneHeader* table() const noexcept;
  template <typename Record>
  [[nodiscard]] Lane<Record> at(size_t lane) const noexcept {
    LaneHeader* header = table() + lane;
    return {header, reinterpret_cast<Record*>(base_ + header->offset)};
  }

  int descriptor_ = -1;
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace lagometer::engine
