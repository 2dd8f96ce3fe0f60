// SPDX-License-Identifier: Apache-2.0
// What a probe writes, as the control plane reads it (docs/PROTOCOL.md, "The probe's file"). Little-endian hosts only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lagometer::probes {

constexpr uint64_t kMagic = 0x31424F5250474C4Cull;  // "LLGPROB1"
constexpr uint32_t kVersion = 2;
constexpr uint64_t kHeaderBytes = 4096;
constexpr uint32_t kChunkBytes = 65536;

/// The file: this, padded to kHeaderBytes, then the chunks.
struct Header {  // kProgramAt bytes from its begin on: the program's name and arguments, each ended by a zero
  uint64_t magic;
  uint32_t version;
  uint32_t chunk_bytes;
  uint32_t chunks;         // that there are
  uint32_t chunks_in_use;  // counts on when there are no more
  uint64_t overflow;       // records that found no room
  uint32_t process;
  uint32_t program_bytes;
};
constexpr uint64_t kProgramAt = 64;
static_assert(sizeof(Header) <= kProgramAt);

/// One chunk belongs to one thread. The records that are counted are whole.
struct ChunkHeader {
  uint32_t thread;
  uint32_t count;
  std::array<char, 16> name;  // of the thread, as it was when it began the chunk
  std::array<uint64_t, 5> zeros;
};
static_assert(sizeof(ChunkHeader) == 64);

enum class Call : uint16_t {
  send = 1,
  receive = 2,
  wait = 3,        // poll, select, epoll: for several descriptors at once
  block = 4,       // on a condition variable or a futex
  notify = 5,      // a condition variable or a futex; with a descriptor: an eventfd or pipe was written to
  drained = 6,     // an eventfd or pipe was read: what it notified has come
  api_write = 16,  // the middleware's own functions
  api_take = 17,
  api_wait = 18,  // of several in a row on one thread, with nothing in between, the last
  // Of programs that are not ours, once for each; two texts follow, its name and its type.
  declare_topic = 32,
  declare_writer = 33,  // `object`: as in its writes; `connection`: its topic, where that was declared by itself
  declare_reader = 34,
  // ROS 2, as its trace functions tell it.
  ros2 = 48,       // once: a text each for the distribution, its tracetools' version, and why nothing is stamped
  ros2_node = 49,  // two texts: a node's name and namespace
  rclcpp_publish = 64,
  rcl_publish = 65,
  rmw_publish = 66,
  rmw_take = 67,  // when it was taken; one that took nothing is not written down
  rcl_take = 68,
  rclcpp_take = 69,
  callback_start = 70,
  callback_end = 71,
  executor_execute = 74,
  rclcpp_intra_publish = 75,
};

/// One call, from its entry to its return. `keys` records of what it carried follow.
struct CallRecord {
  int64_t begin_ns;  // never 0
  int64_t end_ns;
  uint16_t call;
  uint16_t cpu_begin;
  uint16_t cpu_end;
  uint16_t keys;
  int32_t descriptor;  // of sockets; -1 elsewhere
  int32_t zero;
  int64_t result;  // bytes, or what the function returned; of ROS 2's rmw: the message's source time stamp
  uint64_t
      object;  // the condition variable, futex, eventfd or pipe; of a stream socket: bytes that went this way before;
               // of the middleware's functions: the writer or reader; of ROS 2: the handle, 0 where none is told
  uint64_t connection;  // of a stream socket with addresses: what both ends know it by, this way; of a write: the
                        // time that the application gave, CLOCK_REALTIME; of ROS 2: where the message is; else 0
  uint64_t is_stream;   // 1: a stream socket, whose bytes are counted
};
static_assert(sizeof(CallRecord) == 64);

enum class KeyKind : uint8_t {
  envelope = 1,  // no protocol that is known: our own envelope stood in the bytes
  data = 2,      // RTPS submessages
  data_fragment = 3,
  heartbeat = 4,
  acknowledgement = 5,
  gap = 6,
  taken = 7,     // a message that was taken: `number` is the writer's time, CLOCK_REALTIME, ns
  endpoint = 8,  // the GUID of what is declared
  text = 9,      // a TextRecord
};

constexpr uint32_t kStreamUnknown = 0xFFFFFFFF;
constexpr uint32_t kStreamIsTime = 0xFFFFFFFE;  // there is no envelope; `sequence` is the writer's time, as above

struct KeyRecord {
  int64_t zero;                    // where a call has its begin
  std::array<uint8_t, 12> prefix;  // of the GUID; zeros without RTPS
  std::array<uint8_t, 4> writer;
  int64_t number;  // the writer's sequence number; of a heartbeat the last that it has, of a gap the first that
                   // will not come, of an acknowledgement the first that has not come; of
                   // an envelope alone how many of the call's bytes stand before it
  uint32_t first_fragment;  // 0: not fragmented
  uint32_t fragments;       // in this submessage
  uint32_t fragments_all;   // of the whole sample
  uint32_t stream;          // of the envelope; kStreamUnknown without
  uint64_t sequence;        // likewise
  uint8_t kind;
  uint8_t zeros[3];
  uint32_t payload_bytes;  // of the whole sample, the 4 bytes that say how it is encoded among them; 0: not known
};
static_assert(sizeof(KeyRecord) == 64);

/// A piece of a text: those of one text follow each other.
struct TextRecord {
  int64_t zero;
  uint8_t text;  // the how-many-th of its call
  uint8_t bytes;
  std::array<char, 46> characters;
  uint8_t kind;
  uint8_t zeros[7];
};
static_assert(sizeof(TextRecord) == 64 && offsetof(TextRecord, kind) == offsetof(KeyRecord, kind));

}  // namespace lagometer::probes
