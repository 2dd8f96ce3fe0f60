/* SPDX-License-Identifier: Apache-2.0
 *
 * lagometer/adapter.h: the only header that an adapter needs. C11 and C++20.
 *
 * WHAT AN ADAPTER IS
 *   A shared library that lets lagometer measure one middleware. It exports exactly one symbol, `lagometer_adapter`,
 *   which returns a table of functions. Next to the library is `adapter.json`, the sidecar. It says what must be set up
 *   BEFORE the library is opened (environment, preloads, daemons) and what the adapter supports.
 *   lagometer opens the library with RTLD_NOW | RTLD_LOCAL and never closes it.
 *
 * THE OBJECTS
 *   context   one participant in one domain; everything else lives in it
 *   node      what the middleware calls a node; if it has no nodes, just a name
 *   type      a payload type, by registry name ("bytes", "Image", ...) or opaque (name, hash, encapsulation)
 *   writer    one publisher on one topic          reader    one subscriber on one topic
 *   waitset   something one thread can block on until one of its readers has data
 *
 * LIFECYCLE (`create` allocates and checks, `enable` starts; nothing arrives before `enable`)
 *   loaded    probe                                       (in a child process, nothing started)
 *   created   context, enable it -> node -> type -> writer, reader -> waitset, attach
 *   enabled   readers, then writers; discovery: writer_matched and a probe message on each writer every few
 *             milliseconds, until every reader has heard every writer it expects; never between warm-up and drain
 *             -> borrow, commit, take, release, wait, ...     (the measured phase)
 *   gone      destroy in reverse order, enabled or not        (blocks until no callback is running)
 *
 * THE MESSAGE
 *   lagometer writes a 16-byte envelope and the payload into the regions that `borrow` returns. The adapter never reads
 *   or changes them. The message carries no time stamps: they stay in the records of both sides. A payload that is
 *   smaller than the envelope gets a short form in its first LAGOMETER_PAYLOAD_BYTES_MIN bytes.
 *
 * PAYLOAD TYPES (the sidecar lists the supported ones; see docs/WORKLOADS.md)
 *   "bytes"        any length up to max_bytes, one region
 *   "fixed"        always max_bytes
 *   and ROS 2 messages. lagometer fills the part named here; the adapter fills in the rest to match:
 *   "string"       std_msgs/String: one region, the text without its terminating zero
 *   "Image"        sensor_msgs/Image: one region, `data`
 *   "PointCloud2"  sensor_msgs/PointCloud2: one region, `data`, a multiple of LAGOMETER_POINT_BYTES
 *   "Imu"          sensor_msgs/Imu: two regions: the text of header.frame_id, LAGOMETER_TEXT_ENVELOPE_BYTES long, then
 *                  its 37 numbers back to back; always LAGOMETER_IMU_BYTES
 *   In "string" and "Imu" the first region is text. lagometer writes only printable ASCII there, the envelope as
 *   LAGOMETER_TEXT_ENVELOPE_BYTES hexadecimal digits. Bytes it does not write must already hold text (no zeros).
 *
 * OWNERSHIP
 *   Handles belong to the adapter, from create to destroy. Strings and configurations belong to the caller and are
 *   valid only during the call: copy what you keep. The memory that `borrow` returns belongs to the caller until
 *   `commit` or `discard`; the memory that `take` returns, until `release`.
 *
 * ERRORS
 *   Functions return a status. Before a function returns a negative status, it calls `host->fail` with a sentence that
 *   says what was wrong, where, and what to do. Nothing unwinds across this boundary: catch every exception and panic.
 *
 * GROWTH
 *   Every struct starts with `size` (its sizeof in the code that created it) and `abi_version`, except lagometer_string
 *   and lagometer_region, which never grow. Tables and structs only grow at the end. LAGOMETER_..._SIZE_1_0 is the
 *   original size of each. Both sides accept any size from that up, shorter or longer than their own:
 *   - The side that reads a struct uses no field beyond `size`: check with LAGOMETER_HAS(pointer, field). A function
 *     that was added later may also be null. "since 1.1" in a field's comment means that it was added later.
 *   - The side that fills in the other side's struct (`message`, `sample`, `matched`, `counters`) writes no field
 *     beyond its `size` and does not change `size` or `abi_version`: the caller sets both in every element beforehand.
 *   `abi_version` changes only if an existing part changes its meaning. A host supports every version up to its own.
 *   Reserved words are zero. A callee rejects flags and mask bits that it does not know with LAGOMETER_INVALID.
 *   Abilities beyond the core are extensions: `extension(object, "timers/1")` returns a table, or null.
 *
 * CONTRACT TAGS, on every function pointer
 *   [thread: any | one at a time per object | waiting thread; state: loaded | created | enabled | any;
 *    in-callback: yes | no; blocks: never | bounded | <what for>; allocates: no | setup | yes]
 *   `state` is the state of the object (the first argument) when the host calls: created (and not enabled), enabled, or
 *   either (any). Objects without enable (node, type, waitset) are "created" from create to destroy.
 *   `allocates: no` applies after `enable` and to the adapter's own code, not to what the middleware does inside.
 *   Required: the pointer is set. Optional: it may be null. Status: what it may return besides NO_RESOURCE and FAILED.
 */
#ifndef LAGOMETER_ADAPTER_H
#define LAGOMETER_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define LAGOMETER_NOEXCEPT noexcept
#else
#define LAGOMETER_NOEXCEPT
#endif

#define LAGOMETER_ABI_VERSION 1u
#define LAGOMETER_ENVELOPE_BYTES 16u
#define LAGOMETER_TEXT_ENVELOPE_BYTES 32u /* "string" and "Imu" */
#define LAGOMETER_PAYLOAD_BYTES_MIN 4u    /* "bytes" and "string", which may be smaller than an envelope */
#define LAGOMETER_POINT_BYTES 16u         /* "PointCloud2" */
#define LAGOMETER_IMU_BYTES 328u          /* "Imu": 32 of text, 296 of numbers */
#define LAGOMETER_REGIONS_MAX 4u

/* Where a field ends; and whether a struct, which may be shorter than in this header, has the field (by its `size`). */
#define LAGOMETER_END_OF(type, field) (offsetof(type, field) + sizeof(((type*)0)->field))
#define LAGOMETER_HAS(pointer, field) \
  ((size_t)((const char*)(&(pointer)->field + 1) - (const char*)(pointer)) <= (pointer)->size)

/* Status of a call. Negative: the call failed and host->fail got the reason. */
typedef int32_t lagometer_status;
#define LAGOMETER_OK 0
#define LAGOMETER_TIMEOUT 1      /* nothing happened before the given time */
#define LAGOMETER_REJECTED 2     /* not accepted now (queue full, back-pressure timed out); counted by counters() */
#define LAGOMETER_UNSUPPORTED -1 /* this middleware can't do it; the sidecar also says so */
#define LAGOMETER_INVALID -2     /* the caller asked for something impossible */
#define LAGOMETER_NO_RESOURCE -3 /* memory, descriptors, ports, segments */
#define LAGOMETER_FAILED -4      /* the middleware refused or broke */

/* Text: not terminated, UTF-8. data may be null if size is 0. */
typedef struct lagometer_string {
  const char* data;
  uint64_t size;
} lagometer_string;

typedef struct lagometer_context lagometer_context;
typedef struct lagometer_node lagometer_node;
typedef struct lagometer_type lagometer_type;
typedef struct lagometer_writer lagometer_writer;
typedef struct lagometer_reader lagometer_reader;
typedef struct lagometer_waitset lagometer_waitset;

/* The kind of object that a pointer points at, for describe() and extension(). */
#define LAGOMETER_OBJECT_ADAPTER 0u
#define LAGOMETER_OBJECT_CONTEXT 1u
#define LAGOMETER_OBJECT_NODE 2u
#define LAGOMETER_OBJECT_TYPE 3u
#define LAGOMETER_OBJECT_WRITER 4u
#define LAGOMETER_OBJECT_READER 5u
#define LAGOMETER_OBJECT_WAITSET 6u

#define LAGOMETER_LOG_DEBUG 0u
#define LAGOMETER_LOG_INFO 1u
#define LAGOMETER_LOG_WARNING 2u
#define LAGOMETER_LOG_ERROR 3u

#define LAGOMETER_ROLE_RECEIVE 1u /* runs the middleware's reception */
#define LAGOMETER_ROLE_SEND 2u
#define LAGOMETER_ROLE_OTHER 3u

#define LAGOMETER_LAYER_SERIALISE 1u /* for the extension "stamps/1", see stamps.h */
#define LAGOMETER_LAYER_WRITE 2u
#define LAGOMETER_LAYER_SIGNALLED 3u
#define LAGOMETER_LAYER_WOKEN 4u
#define LAGOMETER_LAYER_TAKE 5u
#define LAGOMETER_LAYER_DESERIALISE 6u
#define LAGOMETER_LAYER_VENDOR 4096u /* and above: the adapter's own, named in its sidecar */

#define LAGOMETER_STAMPS_MAX 8u
typedef struct lagometer_stamp {
  int64_t time_ns;
  uint32_t layer, cpu;
} lagometer_stamp; /* see stamps.h */
typedef struct lagometer_stamp_list {
  uint32_t count, reserved;
  lagometer_stamp at[LAGOMETER_STAMPS_MAX];
} lagometer_stamp_list;
/* What identifies a message on both sides; 0 if not known. */
typedef struct lagometer_stamp_key {
  uint64_t writer_id, middleware_sequence;
  int64_t source_time_ns;
} lagometer_stamp_key;

/* What lagometer offers to an adapter. Valid until the process ends. */
typedef struct lagometer_host {
  uint32_t size, abi_version;
  void* self; /* first argument of every function below */
  /* Required. Logs a line; not allowed between warm-up and drain. [thread: any; state: any; in-callback: yes; blocks:
   * bounded; allocates: yes] */
  void (*log)(void* self, uint32_t level, lagometer_string message) LAGOMETER_NOEXCEPT;
  /* Required. Reads the only clock: CLOCK_MONOTONIC in ns. [thread: any; state: any; in-callback: yes; blocks: never;
   * allocates: no] */
  int64_t (*now_ns)(void* self) LAGOMETER_NOEXCEPT;
  /* Required. Reports that a message passed a layer of this endpoint (given by its `user`); `sequence` is the
   * middleware's own number. [thread: any; state: enabled; in-callback: yes; blocks: never; allocates: no] */
  void (*stamp)(void* self, void* endpoint_user, uint32_t layer, uint64_t sequence, int64_t time_ns) LAGOMETER_NOEXCEPT;
  /* Required. First and last call of each thread that the adapter itself creates. [thread: that thread; state: any;
   * in-callback: no; blocks: bounded; allocates: setup] */
  void (*thread_begin)(void* self, uint32_t role, lagometer_string name) LAGOMETER_NOEXCEPT;
  void (*thread_end)(void* self) LAGOMETER_NOEXCEPT; /* [as thread_begin] */
  /* Required. Says why the current call on this thread returns a negative status. Outside a call: the context is
   * broken, and the trial fails. [thread: any; state: any; in-callback: yes; blocks: bounded; allocates: yes] */
  void (*fail)(void* self, lagometer_string message) LAGOMETER_NOEXCEPT;
  /* Beyond LAGOMETER_HOST_SIZE_1_0: like stamp(), for a message identified by its key. [as stamp] */
  void (*stamp_keyed)(void* self, void* endpoint_user, const lagometer_stamp_key* key, uint32_t layer, int64_t time_ns,
                      uint32_t cpu) LAGOMETER_NOEXCEPT;
} lagometer_host;
#define LAGOMETER_HOST_SIZE_1_0 LAGOMETER_END_OF(lagometer_host, fail)

/* Receives text that an adapter produces (JSON from probe and describe). Called once, before that call returns.
 * [thread: the caller's; state: any; in-callback: no; blocks: bounded; allocates: yes] */
typedef void (*lagometer_sink)(void* user, lagometer_string text);
/* Called when a reader has something to take; may also be called spuriously. The host may call take() inside it if the
 * adapter's sidecar lists the ability "listener". Calls for one reader never overlap. [thread: any; state: enabled;
 * in-callback: yes; blocks: as long as the node works; allocates: no] */
typedef void (*lagometer_data_function)(void* user);

#define LAGOMETER_EVENT_MATCHED 1u
#define LAGOMETER_EVENT_LOST 2u
#define LAGOMETER_EVENT_DEADLINE_MISSED 3u
#define LAGOMETER_EVENT_INCOMPATIBLE_QOS 4u
/* Reports an event that the sidecar's `events` lists. `total`: how often it happened since the endpoint was created;
 * MATCHED: how many endpoints match now. Calls may overlap. [thread: any; state: enabled; in-callback: yes; blocks:
 * never; allocates: no] */
typedef void (*lagometer_event_function)(void* user, uint32_t event, uint64_t total);

typedef struct lagometer_context_config {
  uint32_t size, abi_version;
  uint32_t domain;
  uint32_t reserved;
  lagometer_string name;
  lagometer_string profile;           /* "default": as the vendor ships it; "matched": see docs/ADAPTERS.md */
  lagometer_string options;           /* a JSON object; the adapter rejects unknown keys */
  lagometer_string runtime_directory; /* private to the trial, on a tmpfs, removed by lagometer: sockets, segments */
  lagometer_string security;          /* a JSON object or empty */
  lagometer_string network;           /* a JSON object or empty: interfaces and peers, if lagometer knows better */
} lagometer_context_config;
#define LAGOMETER_CONTEXT_CONFIG_SIZE_1_0 LAGOMETER_END_OF(lagometer_context_config, network)

/* Quality of service. A field counts only if its bit is in `present`; otherwise the vendor's default applies. */
#define LAGOMETER_QOS_RELIABILITY (1ull << 0)
#define LAGOMETER_QOS_HISTORY (1ull << 1)
#define LAGOMETER_QOS_DURABILITY (1ull << 2)
#define LAGOMETER_QOS_DEADLINE (1ull << 3)
#define LAGOMETER_QOS_LIFESPAN (1ull << 4)
#define LAGOMETER_QOS_LIVELINESS (1ull << 5)
#define LAGOMETER_QOS_PARTITION (1ull << 6)
#define LAGOMETER_BEST_EFFORT 0u
#define LAGOMETER_RELIABLE 1u
#define LAGOMETER_KEEP_LAST 0u
#define LAGOMETER_KEEP_ALL 1u
#define LAGOMETER_VOLATILE 0u
#define LAGOMETER_TRANSIENT_LOCAL 1u
#define LAGOMETER_AUTOMATIC 0u       /* liveliness: the middleware says that the writer is alive */
#define LAGOMETER_MANUAL_BY_TOPIC 1u /* liveliness: the writer's messages say so */
typedef struct lagometer_qos {
  uint32_t size, abi_version;
  uint64_t present;
  uint32_t reliability;
  uint32_t history;
  uint32_t depth; /* for KEEP_LAST, at least 1 */
  uint32_t durability;
  uint32_t liveliness;
  uint32_t reserved;
  int64_t blocking_ns_max; /* with RELIABILITY: the longest time that commit() may wait for room */
  int64_t deadline_ns, lifespan_ns, liveliness_lease_ns;
  lagometer_string partition; /* one or more names, separated by semicolons */
} lagometer_qos;
#define LAGOMETER_QOS_SIZE_1_0 LAGOMETER_END_OF(lagometer_qos, partition)

/* Each message of the topic belongs to an instance, and each instance has its own history. The key that identifies the
 * instance is the middleware's own: a member of the type, next to the payload. Only for "bytes". */
#define LAGOMETER_TYPE_KEYED (1u << 0)
typedef struct lagometer_type_config {
  uint32_t size, abi_version;
  lagometer_string name;  /* "bytes", "fixed", "string", "Image", "Imu", "PointCloud2": see PAYLOAD TYPES */
  uint64_t max_bytes;     /* of the payload (all regions together), including the envelope */
  uint32_t flags;         /* LAGOMETER_TYPE_... */
  uint32_t encapsulation; /* opaque types: the CDR identifier; otherwise 0 */
  lagometer_string hash;  /* opaque types only; otherwise empty */
  /* Since 1.1. With LAGOMETER_TYPE_KEYED: how many instances a topic of this type has, at least 1; otherwise 0. */
  uint32_t instances;
  uint32_t reserved;
} lagometer_type_config;
#define LAGOMETER_TYPE_CONFIG_SIZE_1_0 LAGOMETER_END_OF(lagometer_type_config, hash)

#define LAGOMETER_DISPATCH_POLL 0u     /* the engine calls take() whenever it likes */
#define LAGOMETER_DISPATCH_WAITSET 1u  /* the reader will be attached to a waitset */
#define LAGOMETER_DISPATCH_LISTENER 2u /* the middleware's own thread calls on_data */
/* The policy that makes two endpoints incompatible, as numbered by DDS 1.4 (2.3.3, QosPolicyId_t). */
#define LAGOMETER_POLICY_DURABILITY 2u
#define LAGOMETER_POLICY_DEADLINE 4u
#define LAGOMETER_POLICY_LIVELINESS 8u
#define LAGOMETER_POLICY_RELIABILITY 11u
/* Says which policy the next LAGOMETER_EVENT_INCOMPATIBLE_QOS is about. 0: not known. [as lagometer_event_function] */
typedef void (*lagometer_policy_function)(void* user, uint32_t policy);

typedef struct lagometer_endpoint_config {
  uint32_t size, abi_version;
  lagometer_type* type;
  lagometer_string topic;
  const lagometer_qos* qos; /* never null; if `present` is 0, all policies are the vendor's default */
  uint32_t dispatch;        /* readers: LAGOMETER_DISPATCH_...; writers: 0, even if the adapter does not support poll */
  uint32_t flags;           /* none yet */
  void* user;               /* first argument of the two functions below */
  lagometer_data_function on_data;
  lagometer_event_function on_event;   /* may be null */
  lagometer_policy_function on_policy; /* since 1.1; may be null */
} lagometer_endpoint_config;
#define LAGOMETER_ENDPOINT_CONFIG_SIZE_1_0 LAGOMETER_END_OF(lagometer_endpoint_config, on_event)

#define LAGOMETER_ORIGIN_LOANED 1u /* the middleware's own memory: its content is not copied again */
#define LAGOMETER_ORIGIN_NATIVE 2u /* a message object of the middleware, which serialises or copies it on commit */
#define LAGOMETER_ORIGIN_COPIED 3u /* the adapter's buffer, which it passes to the middleware */

typedef struct lagometer_region {
  uint8_t* data;
  uint64_t size;
} lagometer_region;

/* Filled by borrow(). The caller zeroes it and sets size and abi_version; the adapter fills in the rest; the caller
 * keeps it until commit or discard. The regions together, in order, are the payload. The envelope is at the start of
 * the first region. */
typedef struct lagometer_message {
  uint32_t size, abi_version;
  uint32_t origin;
  uint32_t region_count;
  lagometer_region regions[LAGOMETER_REGIONS_MAX];
  void* adapter_data; /* the adapter's own */
  /* Beyond LAGOMETER_MESSAGE_SIZE_1_0: filled by commit() if stamps were requested (stamps.h). */
  lagometer_stamp_key key;
  lagometer_stamp_list stamps;
  uint32_t instance; /* since 1.1, keyed types only: the key, which the caller writes before commit() */
  uint32_t reserved;
} lagometer_message;
#define LAGOMETER_MESSAGE_SIZE_1_0 LAGOMETER_END_OF(lagometer_message, adapter_data)

#define LAGOMETER_CLOCK_NONE 0u /* there is no time */
#define LAGOMETER_CLOCK_MONOTONIC 1u
#define LAGOMETER_CLOCK_WALL 2u
#define LAGOMETER_SAMPLE_NOT_DATA (1u << 0) /* a state change: no payload; the engine skips it */
#define LAGOMETER_SAMPLE_LOANED (1u << 1)   /* the regions are the middleware's own memory */

/* The most samples of one reader that the host holds between take() and release(). */
#define LAGOMETER_HELD_MAX 64u

/* Filled by take(): a borrowed view of a message and what is known about it. The caller zeroes each element and sets
 * its size and abi_version once, then reuses it. A field that the adapter never writes stays 0; a field that it writes
 * for some samples it must write for all. */
typedef struct lagometer_sample {
  uint32_t size, abi_version;
  uint32_t flags;
  uint32_t region_count;
  lagometer_region regions[LAGOMETER_REGIONS_MAX]; /* read-only for the engine */
  uint64_t writer_id;                              /* 0: not known */
  uint64_t middleware_sequence;                    /* 0: not known */
  int64_t source_time_ns, reception_time_ns;       /* as the middleware reports them */
  uint32_t source_clock, reception_clock;          /* LAGOMETER_CLOCK_... */
  /* When the middleware's own thread noticed this message; 0: the adapter can't observe it. With "poll" and "waitset"
   * it is set if and only if the sidecar's `stamps` list "signalled" there. */
  int64_t signalled_ns;
  uint32_t signalled_cpu; /* the CPU of that thread at signalled_ns; 65535: not known */
  uint32_t reserved;
  void* adapter_data; /* the adapter's own */
  /* Beyond LAGOMETER_SAMPLE_SIZE_1_0: filled by take() if stamps were requested (stamps.h). */
  lagometer_stamp_list stamps;
  uint32_t instance; /* since 1.1, keyed types only: the key of the received message */
  uint32_t reserved_too;
} lagometer_sample;
#define LAGOMETER_SAMPLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_sample, adapter_data)

/* Before the call, the caller sets size and abi_version, and everything else is 0. */
typedef struct lagometer_matched {
  uint32_t size, abi_version;
  uint32_t count; /* remote endpoints of the other kind that are connected now, without destroyed ones */
  uint32_t exact; /* 1: both sides are known to be ready; 0: this side's view; 2: not known, count is 0 */
} lagometer_matched;
#define LAGOMETER_MATCHED_SIZE_1_0 LAGOMETER_END_OF(lagometer_matched, exact)

#define LAGOMETER_COUNTER_LOST (1ull << 0)
#define LAGOMETER_COUNTER_REJECTED (1ull << 1)
#define LAGOMETER_COUNTER_OVERWRITTEN (1ull << 2)
#define LAGOMETER_COUNTER_DEADLINE (1ull << 3)
#define LAGOMETER_COUNTER_RESENT (1ull << 4)
typedef struct lagometer_counters {
  uint32_t size, abi_version;
  uint64_t present; /* which of these the middleware reports */
  /* lost: reader: messages it knows it missed; writer: messages that commit() accepted but not all readers got.
   * rejected: writer: messages that commit() or borrow() rejected; reader: messages that arrived and found no room.
   * overwritten: messages that keep_last dropped for newer ones. */
  uint64_t lost, rejected, overwritten, deadline_missed, resent;
} lagometer_counters;
#define LAGOMETER_COUNTERS_SIZE_1_0 LAGOMETER_END_OF(lagometer_counters, resent)

/* The adapter. */
typedef struct lagometer_adapter_table {
  uint32_t size, abi_version;
  lagometer_string name;

  /* Required. JSON {"version": text, "abilities": {...}, "limits": {...}}, as in the sidecar but determined on this
   * machine; starts nothing. Status: OK, INVALID (options). [thread: any; state: loaded; in-callback: no; blocks:
   * bounded; allocates: yes] */
  lagometer_status (*probe)(lagometer_string options, lagometer_sink sink, void* user) LAGOMETER_NOEXCEPT;

  /* Required. Returns INVALID for an unknown option, profile, flag or quality of service, UNSUPPORTED for one that the
   * middleware does not have; sets *out only with OK. The parent is created or enabled. Status: OK, INVALID,
   * UNSUPPORTED. [thread: one at a time per object; state: any; in-callback: no; blocks: bounded; allocates: setup] */
  lagometer_status (*context_create)(const lagometer_context_config* config,
                                     lagometer_context** out) LAGOMETER_NOEXCEPT;
  /* Required. Called once. Status: OK. [thread: one at a time per object; state: created; in-callback: no; blocks:
   * bounded; allocates: setup] */
  lagometer_status (*context_enable)(lagometer_context* context) LAGOMETER_NOEXCEPT;
  lagometer_status (*node_create)(lagometer_context* context, lagometer_string name,
                                  lagometer_node** out) LAGOMETER_NOEXCEPT; /* [as context_create] */
  lagometer_status (*type_create)(lagometer_context* context, const lagometer_type_config* config,
                                  lagometer_type** out) LAGOMETER_NOEXCEPT; /* [as context_create] */
  lagometer_status (*writer_create)(lagometer_node* node, const lagometer_endpoint_config* config,
                                    lagometer_writer** out) LAGOMETER_NOEXCEPT;   /* [as context_create] */
  lagometer_status (*writer_enable)(lagometer_writer* writer) LAGOMETER_NOEXCEPT; /* [as context_enable] */
  lagometer_status (*reader_create)(lagometer_node* node, const lagometer_endpoint_config* config,
                                    lagometer_reader** out) LAGOMETER_NOEXCEPT;   /* [as context_create] */
  lagometer_status (*reader_enable)(lagometer_reader* reader) LAGOMETER_NOEXCEPT; /* [as context_enable] */

  /* Required. Returns when no callback of the object is running or will run. Null is allowed and does nothing.
   * [thread: one at a time per object; state: any; in-callback: no; blocks: until callbacks end; allocates: yes] */
  void (*reader_destroy)(lagometer_reader* reader) LAGOMETER_NOEXCEPT;
  void (*writer_destroy)(lagometer_writer* writer) LAGOMETER_NOEXCEPT;
  void (*type_destroy)(lagometer_type* type) LAGOMETER_NOEXCEPT;
  void (*node_destroy)(lagometer_node* node) LAGOMETER_NOEXCEPT;
  void (*context_destroy)(lagometer_context* context) LAGOMETER_NOEXCEPT;

  /* Required. Returns memory for `bytes` of payload. One message at a time per writer. Status: OK, INVALID (a size that
   * the type has not), REJECTED (no room now). [thread: one at a time per object; state: enabled; in-callback: yes;
   * blocks: bounded; allocates: no] */
  lagometer_status (*borrow)(lagometer_writer* writer, uint64_t bytes, lagometer_message* message) LAGOMETER_NOEXCEPT;
  /* Required. Publishes the message. OK: the middleware accepted it, though a keep_last queue may still lose it, and
   * with the sidecar's `depth: false` more than `depth` may wait. REJECTED: it was not accepted, no reader gets it, and
   * it is gone. If one of several readers has no room, either all get it or none does (REJECTED); or it is OK, and what
   * that reader misses is counted. Status: OK, REJECTED. [thread: one at a time per object; state: enabled;
   * in-callback: yes; blocks: qos.blocking_ns_max; allocates: no] */
  lagometer_status (*commit)(lagometer_writer* writer, lagometer_message* message) LAGOMETER_NOEXCEPT;
  /* Required. Takes the message back unsent. [thread: one at a time per object; state: enabled; in-callback: yes;
   * blocks: never; allocates: no] */
  void (*discard)(lagometer_writer* writer, lagometer_message* message) LAGOMETER_NOEXCEPT;

  /* Required. Fills up to `max` samples of an array whose elements are `stride` bytes apart; *taken may be 0 with OK.
   * The host releases all samples of one take() before it takes from that reader again. Status: OK. [thread: one at a
   * time per object; state: enabled; in-callback: yes, of that reader; blocks: never; allocates: no] */
  lagometer_status (*take)(lagometer_reader* reader, lagometer_sample* samples, uint32_t stride, uint32_t max,
                           uint32_t* taken) LAGOMETER_NOEXCEPT;
  /* Required. Takes back the samples of one take(). [thread: one at a time per object; state: enabled; in-callback:
   * yes; blocks: never; allocates: no] */
  void (*release)(lagometer_reader* reader, lagometer_sample* samples, uint32_t stride,
                  uint32_t count) LAGOMETER_NOEXCEPT;

  /* Required. The host calls writer_matched repeatedly until discovery ends, so the adapter may look for new readers
   * there if nothing else does. Status: OK. [thread: any; state: enabled; in-callback: no; blocks: bounded; allocates:
   * yes] */
  lagometer_status (*writer_matched)(lagometer_writer* writer, lagometer_matched* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_matched)(lagometer_reader* reader, lagometer_matched* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*writer_counters)(lagometer_writer* writer, lagometer_counters* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_counters)(lagometer_reader* reader, lagometer_counters* out) LAGOMETER_NOEXCEPT;

  /* Required. JSON of the effective settings of an object (LAGOMETER_OBJECT_...): {"settings": {key: {"value":,
   * "default":}}, "observed": {key: value} (facts that nobody set, such as the library that was loaded),
   * "paste": [{"file": text, "text": text}], "transport": see docs/ADAPTERS.md}. Status: OK. [thread: any; state:
   * enabled; in-callback: no; blocks: bounded; allocates: yes] */
  lagometer_status (*describe)(uint32_t kind, const void* object, lagometer_sink sink, void* user) LAGOMETER_NOEXCEPT;

  /* Optional, as a group: null if the middleware has nothing to wait on (the sidecar then lists no "waitset"). A reader
   * with LAGOMETER_DISPATCH_WAITSET is attached to one waitset, between its create and its enable. That waitset may
   * belong to another context of this adapter only if the abilities say "waitset_contexts": true. Status: OK, INVALID,
   * UNSUPPORTED. [thread: one at a time per object; state: created; in-callback: no; blocks: bounded; allocates: setup]
   */
  lagometer_status (*waitset_create)(lagometer_context* context, lagometer_waitset** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*waitset_attach)(lagometer_waitset* waitset, lagometer_reader* reader) LAGOMETER_NOEXCEPT;
  /* Optional, as above. Waits until an attached reader has data, trigger() was called, or host time `until_ns` is
   * reached (TIMEOUT). It is level-triggered: while data is left untaken, it returns at once. Status: OK, TIMEOUT.
   * [thread: waiting thread; state: created; in-callback: no; blocks: until_ns; allocates: no] */
  lagometer_status (*waitset_wait)(lagometer_waitset* waitset, int64_t until_ns) LAGOMETER_NOEXCEPT;
  /* Optional, as above. Ends one wait, the current or the next. [thread: any; state: created; in-callback: yes; blocks:
   * never; allocates: no] */
  void (*waitset_trigger)(lagometer_waitset* waitset) LAGOMETER_NOEXCEPT;
  /* Optional, as above. Called before its readers are destroyed. Null is allowed. [thread: one at a time per object;
   * state: created; in-callback: no; blocks: bounded; allocates: yes] */
  void (*waitset_destroy)(lagometer_waitset* waitset) LAGOMETER_NOEXCEPT;

  /* Required. Returns the table of an extension of this object, or null, as most adapters do. [thread: any; state: any;
   * in-callback: no; blocks: never; allocates: no] See EXTENSIONS below. */
  const void* (*extension)(uint32_t kind, void* object, lagometer_string name)LAGOMETER_NOEXCEPT;

  /* Optional, since 1.1. Like waitset_wait, but also says which readers have data: `ready` gets their indices in the
   * order of attach, from 0, each once, at most `max`; *count says how many. The host takes from these readers only, so
   * every reader with untaken data must be listed, by a later wait if `max` others were. A listed reader may turn out
   * to have no data; *count may be 0 (trigger(), or spuriously). Status: OK, TIMEOUT. [thread: waiting thread; state:
   * created; in-callback: no; blocks: until_ns; allocates: no] */
  lagometer_status (*waitset_wait_ready)(lagometer_waitset* waitset, int64_t until_ns, uint32_t* ready, uint32_t max,
                                         uint32_t* count) LAGOMETER_NOEXCEPT;
} lagometer_adapter_table;
#define LAGOMETER_ADAPTER_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_adapter_table, extension)

/* EXTENSIONS: reserved names. Each existing extension has its own header; the object that provides it is in brackets.
 *   exists: timers/1 (timers.h, node): timers fired by the executor that calls the node's readers back.
 *   exists: executor/1 (executor.h, context): one executor for all nodes, instead of one for each.
 *   exists: stamps/1 (stamps.h, writer and reader): when a message was in which layer of the middleware.
 *   exists: services/1 (services.h, node): request and reply.
 *   not yet, to be added to executor/1: executors by kind and threads, callback groups, posting, spinning on the host's
 *     thread. Their timers will be those of timers/1, which need no change: there is one way to create a timer.
 *   not yet: intra/1 serialized/1 forward/1 discovery/1 threads/1 security/1 shm/1 flush/1 loan/1
 */

/* The library's only symbol. Keeps `host`; returns null if it can't work with host->abi_version. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const lagometer_adapter_table* lagometer_adapter(const lagometer_host* host) LAGOMETER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_ADAPTER_H */
