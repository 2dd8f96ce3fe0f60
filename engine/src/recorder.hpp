// SPDX-License-Identifier: Apache-2.0
// Where records go: memory that is sized, mapped and faulted in before anything is measured, shared with a memfd so
// that it can still be read after the worker was killed. One lane per endpoint and kind; a lane has one writing thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "records.hpp"

namespace lagometer::engine {

/// One lane's writing end. A record is written where it stays, field by field as the stamps come, and counted when it
/// is whole: stores only, which a processor does not wait for. Neither allocates nor locks nor calls the system.
template <typename Record>
class Lane {
 public:
  Lane() = default;
  Lane(LaneHeader* header, Record* records) noexcept
      : next_(records + header->count), end_(records + header->capacity), first_(records), header_(header) {}

  /// The next record, all fields 0. Null if the lane is full or there is none; the lane is then flagged, so that the
  /// trial can't pass for whole.
  Record* claim() noexcept {
    if (next_ == end_) [[unlikely]]
      return refuse();
    return next_;
  }
  /// Counts the record that was claimed last.
  void keep() noexcept {
    ++next_;
    // Release: whoever reads the count after this process was killed finds the record whole.
    __atomic_store_n(&header_->count, count(), __ATOMIC_RELEASE);
  }
  [[nodiscard]] uint64_t count() const noexcept { return static_cast<uint64_t>(next_ - first_); }
  /// Records that still fit.
  [[nodiscard]] uint64_t room() const noexcept { return static_cast<uint64_t>(end_ - next_); }
  [[nodiscard]] bool full() const noexcept { return header_ != nullptr && (header_->flags & kLaneFull) != 0; }

 private:
  Record* refuse() noexcept {
    if (header_ != nullptr) header_->flags |= kLaneFull;
    return nullptr;
  }

  Record* next_ = nullptr;
  Record* end_ = nullptr;
  Record* first_ = nullptr;
  LaneHeader* header_ = nullptr;
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

  /// Records so far in all lanes, or in those of one kind. [thread: any]
  [[nodiscard]] uint64_t count(std::optional<LaneKind> kind = std::nullopt) const noexcept;
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
