// SPDX-License-Identifier: Apache-2.0
// What a probe writes and the control plane reads (docs/PROTOCOL.md, "The probe's file"). Little-endian hosts only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace lagometer::probes {

constexpr uint64_t kMagic = 0x31424F5250474C4Cull;  // "LLGPROB1"
constexpr uint32_t kVersion = 3;
constexpr uint64_t kHeaderBytes = 4096;
constexpr uint32_t kChunkBytes = 65536;

/// The file: this, padded to kHeaderBytes, then the chunks.
struct Header {  // at kProgramAt: the program's name and arguments, each terminated by a zero
  uint64_t magic;
  uint32_t version;
  uint32_t chunk_bytes;
  uint32_t chunks;         // in the file
  uint32_t chunks_in_use;  // keeps counting when no more are left
  uint64_t overflow;       // records that found no room
  uint32_t process;
  uint32_t program_bytes;
};
constexpr uint64_t kProgramAt = 64;
static_assert(sizeof(Header) <= kProgramAt);

/// One chunk belongs to one thread. Counted records are complete.
struct ChunkHeader {
  uint32_t thread;
  uint32_t count;
  std::array<char, 16> name;  // of the thread when it began the chunk
  std::array<uint64_t, 5> zeros;
};
static_assert(sizeof(ChunkHeader) == 64);

enum class Call : uint16_t {
  send = 1,
  receive = 2,
  wait = 3,        // poll, select, epoll: for several descriptors at once
  block = 4,       // on a condition variable or a futex
  notify = 5,      // a condition variable or a futex; with a descriptor: an eventfd or pipe was written to
  drained = 6,     // an eventfd or pipe was read: its notification has arrived
  api_write = 16,  // the middleware's own functions
  api_take = 17,
  api_wait = 18,  // of several in a row on one thread, with nothing in between, only the last
  // Programs that are not ours: once for each object; two texts follow, its name and its type.
  declare_topic = 32,
  declare_writer = 33,  // `object`: as in its writes; `connection`: its topic, if that was declared separately
  declare_reader = 34,
  // ROS 2, as reported by its trace functions.
  ros2 = 48,            // once: three texts: the distribution, its tracetools' version, and why nothing is stamped
  ros2_node = 49,       // two texts: a node's name and namespace
  ros2_publisher = 50,  // `object` as in `rmw_publish` and `rmw_take`; a text: its topic
  ros2_subscription = 51,
  rclcpp_publish = 64,
  rcl_publish = 65,
  rmw_publish = 66,
  rmw_take = 67,  // when it was taken; not recorded if nothing was taken
  rcl_take = 68,
  rclcpp_take = 69,
  callback_start = 70,
  callback_end = 71,
  executor_execute = 74,
  rclcpp_intra_publish = 75,
  // ROS 1: a message arrived and has a deserialiser (`object`), before it waits for its callback.
  ros1_received = 80,
};

/// One call, from its entry to its return. `keys` records of its messages follow.
struct CallRecord {
  int64_t begin_ns;  // never 0
  int64_t end_ns;
  uint16_t call;
  uint16_t cpu_begin;
  uint16_t cpu_end;
  uint16_t keys;
  int32_t descriptor;  // of sockets; -1 elsewhere
  int32_t plain;       // 1: read, readv, write or writev, which also serve files
  int64_t result;      // bytes, or what the function returned; for ROS 2's rmw: the message's source time stamp
  /// The condition variable, futex, eventfd or pipe. For a stream socket: bytes sent in this direction before. For the
  /// middleware's functions: the writer or reader. For ROS 2: the handle, 0 if not reported.
  uint64_t object;
  /// For a stream socket with addresses: the number that both ends compute for it, in this direction. For a write: the
  /// time that the application gave, CLOCK_REALTIME. For ROS 2: the message's address. For a take of ROS 1: the
  /// message's deserialiser. Otherwise 0.
  uint64_t connection;
  uint64_t is_stream;  // 1: a stream socket, whose bytes are counted
};
static_assert(sizeof(CallRecord) == 64);

enum class KeyKind : uint8_t {
  envelope = 1,  // no known protocol: the bytes contained our own envelope
  data = 2,      // RTPS submessages
  data_fragment = 3,
  heartbeat = 4,
  acknowledgement = 5,
  gap = 6,
  taken = 7,     // a taken message: `number` is the writer's time, CLOCK_REALTIME, ns; the GUID is the writer's
  endpoint = 8,  // the GUID of a declared endpoint
  text = 9,      // a TextRecord
  /// ROS 1: `number` is the address of the call's first byte, or of a serialised message of `payload_bytes`; with a
  /// `first_fragment`, of a message that is not serialised.
  buffer = 10,
  content = 11,  // Zenoh: `sequence` is a hash of the message's key and content
};

constexpr uint32_t kStreamUnknown = 0xFFFFFFFF;
constexpr uint32_t kStreamIsTime = 0xFFFFFFFE;  // there is no envelope; `sequence` is the writer's time, as above

struct KeyRecord {
  int64_t zero;                    // at the position of a call's begin_ns
  std::array<uint8_t, 12> prefix;  // of the GUID; zeros if not known, as without RTPS
  std::array<uint8_t, 4> writer;
  /// The writer's sequence number. In a heartbeat: the last one that it has; in a gap: the first that will not come; in
  /// an acknowledgement: the first that has not arrived; for an envelope: how many of the call's bytes precede it.
  int64_t number;
  uint32_t first_fragment;  // 0: not fragmented
  uint32_t fragments;       // in this submessage
  uint32_t fragments_all;   // of the whole sample
  uint32_t stream;          // of the envelope; kStreamUnknown without one
  uint64_t sequence;        // likewise
  uint8_t kind;
  uint8_t zeros[3];
  uint32_t payload_bytes;  // of the whole sample, including the 4-byte encapsulation header; 0: not known
};
static_assert(sizeof(KeyRecord) == 64);

/// A piece of a text; the pieces of one text follow each other.
struct TextRecord {
  int64_t zero;
  uint8_t text;  // its index among the call's texts
  uint8_t bytes;
  std::array<char, 46> characters;
  uint8_t kind;
  uint8_t zeros[7];
};
static_assert(sizeof(TextRecord) == 64 && offsetof(TextRecord, kind) == offsetof(KeyRecord, kind));

}  // namespace lagometer::probes
