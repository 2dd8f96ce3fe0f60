// SPDX-License-Identifier: Apache-2.0
// The scheduler's file: a header and fixed-size records, little-endian (docs/PROTOCOL.md, "The scheduler's file").
#pragma once

#include <cstddef>
#include <cstdint>

namespace lagometer::scheduler {

constexpr uint64_t kMagic = 0x31484353'47414C4C;  // "LLAGSCH1"
constexpr uint32_t kVersion = 1;
constexpr size_t kNameBytes = 16;

enum class Kind : uint8_t {
  exchange = 1,  // `thread` leaves the CPU to `other`
  waking = 2,    // `other` wakes `thread`
  born = 3,      // like `waking`, for a new thread
  move = 4,      // `thread` moves from the queue of `cpu` to that of `target_cpu`
  lost = 5,      // an earlier event found no room in the CPU's ring
  name = 6,      // the name of `thread`, in the bytes from `other` on
};

/// `exchange`: how the thread leaves the CPU; `waking`: who wakes it.
enum class State : uint8_t { runnable = 0, asleep = 1, gone = 2, by_thread = 3, by_interrupt = 4 };

struct Header {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t record_bytes = 32;
  uint64_t records = 0;
  uint64_t overflow = 0;  // records that found no room here
  uint64_t lost = 0;      // samples that found no room in a ring
  int64_t begin_ns = 0;   // the records of all CPUs are complete from here …
  int64_t end_ns = 0;     // … until here
  uint32_t cpus = 0;
  uint32_t zero = 0;
};

/// Thread numbers are those of the kernel's first PID namespace. `seen_as`: the number of the thread that leaves the
/// CPU as this process sees it (0: not visible).
struct Record {
  int64_t time_ns = 0;
  Kind kind = Kind::lost;
  State state = State::runnable;
  uint16_t cpu = 0;
  int32_t thread = 0;
  int32_t other = 0;
  int32_t seen_as = 0;
  int32_t target_cpu = -1;
  int32_t zero = 0;
};

static_assert(sizeof(Header) == 64 && sizeof(Record) == 32 && offsetof(Record, other) == 16);

}  // namespace lagometer::scheduler
