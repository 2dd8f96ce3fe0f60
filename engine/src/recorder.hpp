// SPDX-License-Identifier: Apache-2.0
// Where records go: memory that is sized, mapped and faulted in before measuring, shared through a memfd so that it can
// still be read after the worker was killed. One lane per endpoint and kind; a lane has one writing thread at a time,
// unless it holds stamps or events.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "endpoint_state.hpp"
#include "records.hpp"

namespace lagometer::engine {

/// There is no room for the records. what() names the bytes and what to do.
struct NoRoom : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The writing end of one lane. A record is written in place, field by field as the stamps come, and counted when it is
/// complete. This takes only stores, which a processor does not wait for. It neither allocates nor locks nor makes
/// system calls.
///
/// After a pause the page costs time, not the store: its address must be translated again. So count, record and the
/// endpoint's own state are in one page, and the state moves with the records when a page is full.
template <typename Record, typename State>
class alignas(32) Lane {  // never in two cache lines
 public:
  using Page = LanePage<Record, State>;

  Lane() = default;
  /// `pages`: as many as `capacity` records need, at least one.
  Lane(LaneHeader* header, Page* pages) noexcept
      : page_(pages), first_(pages), header_(header), limit_(std::min(header->capacity, Page::kRecords)) {}

  /// The endpoint's state at the head of the page. The reference is valid until the next keep().
  [[nodiscard]] State& state() noexcept { return page_->head.state; }
  [[nodiscard]] const State& state() const noexcept { return page_->head.state; }

  /// The next record, all fields 0. Null if the lane is full; the lane is then flagged, so that the trial does not
  /// count as complete.
  Record* claim() noexcept {
    if (page_->head.count == limit_) [[unlikely]]
      return refuse();
    return &page_->records[page_->head.count];
  }
  /// Counts the record claimed last.
  void keep() noexcept {
    const uint64_t count = page_->head.count + 1;
    // Release: a reader of the count finds the record complete, even after this process was killed.
    __atomic_store_n(&page_->head.count, count, __ATOMIC_RELEASE);
    if (count == limit_) [[unlikely]]
      turn();
  }
  [[nodiscard]] uint64_t count() const noexcept {
    return static_cast<uint64_t>(page_ - first_) * Page::kRecords + page_->head.count;
  }
  /// Records that still fit.
  [[nodiscard]] uint64_t room() const noexcept { return header_->capacity - count(); }
  [[nodiscard]] bool full() const noexcept { return (header_->flags & kLaneFull) != 0; }

 private:
  /// Goes to the next page, if there is one, and takes the state along: once in 63 messages, after the message that
  /// filled the page has left.
  [[gnu::noinline, gnu::cold]] void turn() noexcept {
    if (room() == 0) return;
    Page* const next = page_ + 1;
    next->head.state = page_->head.state;
    page_ = next;
    limit_ = std::min(room(), Page::kRecords);
  }
  [[gnu::noinline, gnu::cold]] Record* refuse() noexcept {
    header_->flags |= kLaneFull;
    return nullptr;
  }

  Page* page_ = nullptr;
  Page* first_ = nullptr;
  LaneHeader* header_ = nullptr;
  uint64_t limit_ = 0;  // records that the current page may hold
};

using SentLane = Lane<SentRecord, SendState>;
using ReceivedLane = Lane<ReceivedRecord, ReceiveState>;
using CauseLane = Lane<CauseRecord, NoState>;

/// The writing end of a lane that any number of threads write to at once: one exchange of its number claims a place.
/// Counts records that find no room. Neither allocates nor locks nor makes system calls.
template <typename Record>
class SharedLane {
 public:
  SharedLane() = default;  // keeps nothing
  SharedLane(LaneHeader* header, Record* records) noexcept : header_(header), records_(records) {}

  /// Whether these records were requested.
  [[nodiscard]] bool wanted() const noexcept { return records_ != nullptr; }
  /// `record.time_ns` must not be 0. [thread: any]
  void add(const Record& record) const noexcept {
    uint64_t place = __atomic_load_n(&header_->count, __ATOMIC_RELAXED);
    do {
      if (place == header_->capacity) [[unlikely]] {
        __atomic_fetch_add(&header_->overflow, 1, __ATOMIC_RELAXED);
        return;
      }
    } while (
        !__atomic_compare_exchange_n(&header_->count, &place, place + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    Record& to = records_[place];
    write_but_time(to, record);
    // Release: a reader that finds a time finds the record complete.
    __atomic_store_n(&to.time_ns, record.time_ns, __ATOMIC_RELEASE);
  }
  [[nodiscard]] uint64_t overflow() const noexcept { return __atomic_load_n(&header_->overflow, __ATOMIC_RELAXED); }

 private:
  static void write_but_time(StampRecord& to, const StampRecord& record) noexcept {
    to.sequence = record.sequence;
    to.writer_id = record.writer_id;
    to.middleware_sequence = record.middleware_sequence;
    to.source_time_ns = record.source_time_ns;
    to.stream = record.stream;
    to.layer = record.layer;
    to.cpu = record.cpu;
  }
  static void write_but_time(EventRecord& to, const EventRecord& record) noexcept {
    to.total = record.total;
    to.event = record.event;
  }

  LaneHeader* header_ = nullptr;
  Record* records_ = nullptr;
};

using StampLane = SharedLane<StampRecord>;
using EventLane = SharedLane<EventRecord>;

struct LaneSpecification {
  LaneKind kind;
  uint32_t node;
  uint32_t endpoint;
  uint64_t capacity;
};

class Recorder {
 public:
  /// `descriptor`: an inherited memfd, or -1 to create one. Throws NoRoom.
  Recorder(uint32_t worker, std::span<const LaneSpecification> lanes, int descriptor, uint32_t host = 0);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] SentLane sent(size_t lane) const noexcept { return at<SentLane>(lane); }
  [[nodiscard]] ReceivedLane received(size_t lane) const noexcept { return at<ReceivedLane>(lane); }
  [[nodiscard]] CauseLane causes(size_t lane) const noexcept { return at<CauseLane>(lane); }
  [[nodiscard]] StampLane stamps(size_t lane) const noexcept { return shared<StampRecord>(lane); }
  [[nodiscard]] EventLane events(size_t lane) const noexcept { return shared<EventRecord>(lane); }

  /// Records so far in all lanes, or in those of one kind. [thread: any]
  [[nodiscard]] uint64_t count(std::optional<LaneKind> kind = std::nullopt) const noexcept;
  /// The records block with packed lanes, as it is written to standard output.
  [[nodiscard]] std::vector<std::byte> packed() const;

 private:
  [[nodiscard]] LaneHeader* table() const noexcept;
  template <typename Lane>
  [[nodiscard]] Lane at(size_t lane) const noexcept {
    LaneHeader* header = table() + lane;
    return {header, reinterpret_cast<typename Lane::Page*>(base_ + header->offset)};
  }

  template <typename Record>
  [[nodiscard]] SharedLane<Record> shared(size_t lane) const noexcept {
    LaneHeader* header = table() + lane;
    return {header, reinterpret_cast<Record*>(base_ + header->offset)};
  }

  int descriptor_ = -1;
  std::byte* base_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace lagometer::engine
