// SPDX-License-Identifier: Apache-2.0
// The scheduler's file: a header and records of one size, little-endian (docs/PROTOCOL.md, "The scheduler's file").
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
  born = 3,      // likewise, a new one
  move = 4,      // `thread` goes from the queue of `cpu` to that of `target_cpu`
  lost = 5,      // something before this moment found no room in the CPU's ring
  name = 6,      // what `thread` is called, in the bytes from `other` on
};

/// Of `exchange`: how the thread leaves the CPU; of `waking`: who it is that wakes.
enum class State : uint8_t { runnable = 0, asleep = 1, gone = 2, by_thread = 3, by_interrupt = 4 };

struct Header {
  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t record_bytes = 32;
  uint64_t records = 0;
  uint64_t overflow = 0;  // records that found no room here
  uint64_t lost = 0;      // samples that found no room in a ring
  int64_t begin_ns = 0;   // all of all CPUs is there from here …
  int64_t end_ns = 0;     // … until here
  uint32_t cpus = 0;
  uint32_t zero = 0;
};

/// Threads have the numbers of the kernel's first PID namespace; `seen_as`: that of the one that leaves the CPU, as
/// this process sees it (0: not at all).
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
