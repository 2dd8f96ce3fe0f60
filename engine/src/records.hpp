// SPDX-License-Identifier: Apache-2.0
// The binary layout of a worker's results (docs/PROTOCOL.md, "The records block"). Little-endian hosts only.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace lagometer::engine {

static_assert(std::endian::native == std::endian::little, "the records block is little-endian");

constexpr uint64_t kRecordsMagic = 0x314345524F47414Cull;  // "LAGOREC1"
constexpr uint32_t kRecordsVersion = 6;

struct RecordsHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t lane_count;
  uint64_t total_bytes;
  uint32_t worker;
  uint32_t host;  // number of its host among the trial's
  uint8_t zeros[32];
};
static_assert(sizeof(RecordsHeader) == 64);

enum class LaneKind : uint32_t {
  sent = 1,
  received = 2,
  causes = 3,
  sent_stamps = 4,
  received_stamps = 5,
  sent_events = 6,
  received_events = 7
};
constexpr uint32_t kLaneFull = 1;

struct LaneHeader {
  uint32_t kind;
  uint32_t node;
  uint32_t endpoint;
  uint32_t record_bytes;
  uint64_t offset;
  uint64_t capacity;
  uint64_t count;
  uint32_t flags;
  uint32_t page_bytes;  // 0: records are contiguous; otherwise pages of this many bytes, each with its own count
  uint64_t overflow;    // lanes written by several threads: records that found no room
  uint8_t zeros[8];
};
static_assert(sizeof(LaneHeader) == 64);

enum class SendStatus : uint32_t { sent = 0, rejected = 1, failed = 2 };

struct SentRecord {
  uint64_t sequence;
  int64_t intended_ns;
  int64_t publish_ns;
  int64_t published_ns;
  uint64_t cause_sequence;
  uint32_t cause_stream;
  uint32_t cause_count;
  uint32_t status;
  uint16_t cpu_publish;
  uint16_t cpu_published;
  uint32_t first_cause;
  uint32_t callback_ns;  // from the begin of the sending callback to publish_ns; 0: not known
};
static_assert(sizeof(SentRecord) == 64);

constexpr uint32_t kReceivedCorrupted = 1;

struct ReceivedRecord {
  uint64_t sequence;
  int64_t signalled_ns;
  int64_t woken_ns;
  int64_t taken_ns;
  int64_t handled_ns;
  uint32_t stream;
  uint32_t payload_bytes;
  uint32_t flags;
  uint16_t cpu_signalled;
  uint16_t cpu_taken;
  uint64_t middleware_sequence;
};
static_assert(sizeof(ReceivedRecord) == 64);

struct CauseRecord {
  uint64_t sequence;
  uint32_t stream;
  uint32_t zero;
};
static_assert(sizeof(CauseRecord) == 16);

constexpr uint64_t kSequenceUnknown = ~uint64_t{0};
constexpr uint32_t kStreamUnknown = ~uint32_t{0};

/// One stamp of a layer, and what identifies its message: to us (stream and sequence, if known) and to the middleware
/// (the key, LAGOMETER_KEY_...).
struct StampRecord {
  uint64_t sequence;
  uint64_t writer_id;
  uint64_t middleware_sequence;
  int64_t source_time_ns;
  int64_t time_ns;  // stored last: a record without it is incomplete
  uint32_t stream;
  uint32_t layer;  // 0: no stamp, only the key
  uint16_t cpu;
  uint8_t zeros[14];
};
static_assert(sizeof(StampRecord) == 64);

/// An event that the middleware reported about an endpoint (LAGOMETER_EVENT_...).
struct EventRecord {
  uint64_t total;   // so far; for matched: current endpoints
  int64_t time_ns;  // when we were notified; stored last: a record without it is incomplete
  uint32_t event;
  uint32_t zero;
  uint64_t zeros;
};
static_assert(sizeof(EventRecord) == 32);

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kPageHeadBytes = 64;

/// How many records of this size fit into one page of a lane.
constexpr uint64_t records_per_page(uint64_t record_bytes) noexcept {
  return (kPageBytes - kPageHeadBytes) / record_bytes;
}

/// One page of a lane in the worker's memory. In addition to the count of its records it holds `State`, which the
/// endpoint needs for each message anyway and which moves on with the records. So a message touches one page, not
/// several.
template <typename Record, typename State>
struct LanePage {
  static constexpr uint64_t kRecords = records_per_page(sizeof(Record));
  struct alignas(kPageHeadBytes) Head {
    uint64_t count;  // stored last: a counted record is complete
    State state;     // the writing process's own; meaningless to readers
  } head;
  std::array<Record, kRecords> records;

  static_assert(sizeof(Head) == kPageHeadBytes && std::is_trivially_copyable_v<State>);
};

}  // namespace lagometer::engine
