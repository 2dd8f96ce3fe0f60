/* SPDX-License-Identifier: Apache-2.0
 *
 * lagometer/adapter.h: the only header that an adapter needs. C11 and C++20.
 *
 * WHAT AN ADAPTER IS
 *   A shared library that lets lagometer measure one middleware. It exports exactly one symbol,
 *   `lagometer_adapter`, which returns a table of functions. Beside the library lies `adapter.json`, the
 *   sidecar: what must hold BEFORE the library is opened (environment, preloads, daemons) and what it is able to do.
 *   The library is opened with RTLD_NOW | RTLD_LOCAL and is never closed.
 *
 * THE OBJECTS
 *   context   one participant in one domain; everything else lives in it
 *   node      what the middleware calls a node; where it has none, a mere name
 *   type      a payload type, by registry name ("bytes", "fixed") or opaque (name, hash, encapsulation)
 *   writer    one publisher on one topic          reader    one subscriber on one topic
 *   waitset   something one thread can block on until one of its readers has data
 *
 * LIFECYCLE (`create` allocates and checks, `enable` starts; nothing arrives before `enable`)
 *
 *   entry -> probe                                        (in a child process, nothing started)
 *   entry -> context -> node -> type -> writer, reader -> waitset, attach -> enable(context, then the endpoints)
 *         -> borrow, commit, take, release, wait, ...     (the measured phase)
 *         -> destroy in the reverse order                 (blocks until no callback runs any more)
 *
 * THE MESSAGE
 *   lagometer writes a 16-byte envelope and the payload into the regions that `borrow` shows; an adapter never
 *   reads or changes them. No time stamp travels in the message: stamps stay in the records of both sides.
 *
 * OWNERSHIP
 *   Handles belong to the adapter, from create to destroy. Strings and configurations belong to the caller and are
 *   valid during the call only: copy what you keep. What `borrow` shows belongs to the caller until `commit` or
 *   `discard`; what `take` shows, until `release`.
 *
 * ERRORS
 *   A function returns a status. Before it returns a negative one it calls `host->fail` with a sentence: what was
 *   wrong, where, what to do. Nothing unwinds across this boundary: catch every exception, every panic.
 *
 * GROWTH
 *   Every struct starts with `size` (sizeof, as the one who filled it was compiled) and `abi_version`. Tables and
 *   structs grow at their end alone. A reader of a struct uses no field that lies beyond `size`. Reserved words are
 *   zero; a flag or mask bit that a callee does not know is refused with LAGOMETER_INVALID. Abilities beyond the core
 *   come as extensions: `extension(object, "loan/1")` returns a table, or null. Their names are listed at the end.
 *
 * CONTRACT TAGS, on every function pointer
 *   [thread: any | one at a time per object | waiting thread; in-callback: yes | no;
 *    blocks: never | bounded | <what for>; allocates: no | setup | yes]
 *   `allocates: no` holds after `enable`, for the adapter's own code; what the middleware does inside is its own.
 */
#ifndef LAGOMETER_ADAPTER_H
#define LAGOMETER_ADAPTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define LAGOMETER_NOEXCEPT noexcept
#else
#define LAGOMETER_NOEXCEPT
#endif

#define LAGOMETER_ABI_VERSION 1u
#define LAGOMETER_ENVELOPE_BYTES 16u
#define LAGOMETER_REGIONS_MAX 4u

/* Status of a call. Negative: failed, the reason was given to host->fail. */
typedef int32_t lagometer_status;
#define LAGOMETER_OK 0
#define LAGOMETER_TIMEOUT 1      /* nothing happened until the time given */
#define LAGOMETER_REJECTED 2     /* not accepted now (queue full, back-pressure timed out); counted by counters() */
#define LAGOMETER_UNSUPPORTED -1 /* this middleware cannot; also declared in the sidecar */
#define LAGOMETER_INVALID -2     /* the caller asked for something impossible */
#define LAGOMETER_NO_RESOURCE -3 /* memory, descriptors, ports, segments */
#define LAGOMETER_FAILED -4      /* the middleware refused or broke */

/* Text: not terminated, UTF-8. data may be null where size is 0. */
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

/* What an object pointer points at, for describe() and extension(). */
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

/* Layers of the extension "stamps/1", named now so that they stay. */
#define LAGOMETER_LAYER_SERIALISE 1u
#define LAGOMETER_LAYER_WRITE 2u
#define LAGOMETER_LAYER_SIGNALLED 3u
#define LAGOMETER_LAYER_WOKEN 4u
#define LAGOMETER_LAYER_TAKE 5u
#define LAGOMETER_LAYER_DESERIALISE 6u
#define LAGOMETER_LAYER_VENDOR 4096u /* and above: the adapter's own, named in its sidecar */

/* What lagometer offers to an adapter. Valid for the life of the process. */
typedef struct lagometer_host {
  uint32_t size, abi_version;
  void* self; /* first argument of every function below */
  /* A line for the log. [thread: any; in-callback: yes; blocks: bounded; allocates: yes] Not from warm-up to drain. */
  void (*log)(void* self, uint32_t level, lagometer_string message) LAGOMETER_NOEXCEPT;
  /* The one clock: CLOCK_MONOTONIC in ns. [thread: any; in-callback: yes; blocks: never; allocates: no] */
  int64_t (*now_ns)(void* self) LAGOMETER_NOEXCEPT;
  /* Reports that the message with this number of the middleware's own passed a layer of this endpoint (its `user`).
   * [thread: any; in-callback: yes; blocks: never; allocates: no] */
  void (*stamp)(void* self, void* endpoint_user, uint32_t layer, uint64_t sequence, int64_t time_ns) LAGOMETER_NOEXCEPT;
  /* First and last call of a thread that the adapter itself makes. [thread: that thread; in-callback: no; blocks:
   * bounded; allocates: setup] */
  void (*thread_begin)(void* self, uint32_t role, lagometer_string name) LAGOMETER_NOEXCEPT;
  void (*thread_end)(void* self) LAGOMETER_NOEXCEPT; /* [as thread_begin] */
  /* Says why the call in progress on this thread returns a negative status; outside a call: the context is broken and
   * the trial fails. [thread: any; in-callback: yes; blocks: bounded; allocates: yes] */
  void (*fail)(void* self, lagometer_string message) LAGOMETER_NOEXCEPT;
} lagometer_host;

/* Receives text that an adapter produces (JSON from probe and describe). Called once. */
typedef void (*lagometer_sink)(void* user, lagometer_string text);

/* Called when a reader has something to take. May be called spuriously; take() may be called inside if the adapter's
 * sidecar lists the ability "listener". Calls for one reader never overlap. */
typedef void (*lagometer_data_function)(void* user);

#define LAGOMETER_EVENT_MATCHED 1u
#define LAGOMETER_EVENT_LOST 2u
#define LAGOMETER_EVENT_DEADLINE_MISSED 3u
#define LAGOMETER_EVENT_INCOMPATIBLE_QOS 4u
typedef void (*lagometer_event_function)(void* user, uint32_t event, uint64_t total);

typedef struct lagometer_context_config {
  uint32_t size, abi_version;
  uint32_t domain;
  uint32_t reserved;
  lagometer_string name;
  lagometer_string profile;           /* "default": as the vendor ships it; "matched": see docs/ADAPTERS.md */
  lagometer_string options;           /* a JSON object; an unknown key is refused */
  lagometer_string runtime_directory; /* private to the trial, on a tmpfs, removed by lagometer: sockets, segments */
  lagometer_string security;          /* a JSON object or empty */
  lagometer_string network;           /* a JSON object or empty: interfaces and peers, where lagometer knows better */
} lagometer_context_config;

/* Quality of service. A field counts only if its bit is in `present`; else the vendor's default holds. */
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
typedef struct lagometer_qos {
  uint32_t size, abi_version;
  uint64_t present;
  uint32_t reliability;
  uint32_t history;
  uint32_t depth; /* of KEEP_LAST, at least 1 */
  uint32_t durability;
  uint32_t liveliness;
  uint32_t reserved;
  int64_t blocking_ns_max; /* goes with RELIABILITY: the longest that commit() may wait for room */
  int64_t deadline_ns, lifespan_ns, liveliness_lease_ns;
  lagometer_string partition;
} lagometer_qos;

#define LAGOMETER_TYPE_KEYED (1u << 0)
typedef struct lagometer_type_config {
  uint32_t size, abi_version;
  lagometer_string name;  /* "bytes": up to max_bytes, any length; "fixed": always max_bytes */
  uint64_t max_bytes;     /* of the payload, envelope included */
  uint32_t flags;         /* LAGOMETER_TYPE_... */
  uint32_t encapsulation; /* of an opaque type: the CDR identifier; else 0 */
  lagometer_string hash;  /* of an opaque type; else empty */
} lagometer_type_config;

#define LAGOMETER_DISPATCH_POLL 0u     /* the engine calls take() whenever it likes */
#define LAGOMETER_DISPATCH_WAITSET 1u  /* the reader will be attached to a waitset */
#define LAGOMETER_DISPATCH_LISTENER 2u /* on_data is called on the middleware's own thread */
typedef struct lagometer_endpoint_config {
  uint32_t size, abi_version;
  lagometer_type* type;
  lagometer_string topic;
  const lagometer_qos* qos;
  uint32_t dispatch; /* readers: LAGOMETER_DISPATCH_...; writers: 0 */
  uint32_t flags;    /* none yet */
  void* user;        /* first argument of the two functions below */
  lagometer_data_function on_data;
  lagometer_event_function on_event; /* may be null */
} lagometer_endpoint_config;

#define LAGOMETER_ORIGIN_LOANED 1u /* the middleware's own memory: what is written there is not copied again */
#define LAGOMETER_ORIGIN_NATIVE 2u /* a message object of the middleware; it serialises or copies on commit */
#define LAGOMETER_ORIGIN_COPIED 3u /* the adapter's buffer, which it hands to the middleware */

typedef struct lagometer_region {
  uint8_t* data;
  uint64_t size;
} lagometer_region;

/* What borrow() shows: filled by the adapter, kept by the caller until commit or discard. The regions together are the
 * payload, in order; the envelope goes to the start of the first. */
typedef struct lagometer_message {
  uint32_t size, abi_version;
  uint32_t origin;
  uint32_t region_count;
  lagometer_region regions[LAGOMETER_REGIONS_MAX];
  void* adapter_data; /* the adapter's own */
} lagometer_message;

#define LAGOMETER_CLOCK_NONE 0u /* the time beside it is absent */
#define LAGOMETER_CLOCK_MONOTONIC 1u
#define LAGOMETER_CLOCK_WALL 2u
#define LAGOMETER_SAMPLE_NOT_DATA (1u << 0) /* a state change: no payload; the engine skips it */
#define LAGOMETER_SAMPLE_LOANED (1u << 1)   /* the view is the middleware's own memory */

/* What take() shows: a borrowed view and what is known of it. */
typedef struct lagometer_sample {
  uint32_t size, abi_version;
  uint32_t flags;
  uint32_t region_count;
  lagometer_region regions[LAGOMETER_REGIONS_MAX]; /* read-only for the engine */
  uint64_t writer_id;                              /* 0: not known */
  uint64_t middleware_sequence;                    /* 0: not known */
  int64_t source_time_ns, reception_time_ns;       /* as the middleware reports them */
  uint32_t source_clock, reception_clock;          /* LAGOMETER_CLOCK_... */
  int64_t signalled_ns; /* when the middleware's own thread noticed this message; 0: the adapter can't observe it */
  uint32_t signalled_cpu;
  uint32_t reserved;
  void* adapter_data; /* the adapter's own */
} lagometer_sample;

typedef struct lagometer_matched {
  uint32_t size, abi_version;
  uint32_t count; /* remote endpoints of the other kind that this one is connected to */
  uint32_t exact; /* 1: both sides are known to be ready; 0: this side's view; 2: it can't tell, count is 0 */
} lagometer_matched;

#define LAGOMETER_COUNTER_LOST (1ull << 0)
#define LAGOMETER_COUNTER_REJECTED (1ull << 1)
#define LAGOMETER_COUNTER_OVERWRITTEN (1ull << 2)
#define LAGOMETER_COUNTER_DEADLINE (1ull << 3)
#define LAGOMETER_COUNTER_RESENT (1ull << 4)
typedef struct lagometer_counters {
  uint32_t size, abi_version;
  uint64_t present; /* which of these the middleware can tell */
  uint64_t lost, rejected, overwritten, deadline_missed, resent;
} lagometer_counters;

/* The adapter. Every pointer is set, unless its comment says that it may be null. */
typedef struct lagometer_adapter_table {
  uint32_t size, abi_version;
  lagometer_string name;

  /* JSON {"version": text, "abilities": {...}, "limits": {...}}, as in the sidecar but found out here and now; starts
   * nothing. [thread: any; in-callback: no; blocks: bounded; allocates: yes] */
  lagometer_status (*probe)(lagometer_string options, lagometer_sink sink, void* user) LAGOMETER_NOEXCEPT;

  /* [thread: one at a time per object; in-callback: no; blocks: bounded; allocates: setup], for create and enable. */
  lagometer_status (*context_create)(const lagometer_context_config* config,
                                     lagometer_context** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*context_enable)(lagometer_context* context) LAGOMETER_NOEXCEPT;
  lagometer_status (*node_create)(lagometer_context* context, lagometer_string name,
                                  lagometer_node** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*type_create)(lagometer_context* context, const lagometer_type_config* config,
                                  lagometer_type** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*writer_create)(lagometer_node* node, const lagometer_endpoint_config* config,
                                    lagometer_writer** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*writer_enable)(lagometer_writer* writer) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_create)(lagometer_node* node, const lagometer_endpoint_config* config,
                                    lagometer_reader** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_enable)(lagometer_reader* reader) LAGOMETER_NOEXCEPT;

  /* Returns when no callback of the object runs or will run. Null is allowed and does nothing.
   * [thread: one at a time per object; in-callback: no; blocks: until callbacks end; allocates: yes] */
  void (*reader_destroy)(lagometer_reader* reader) LAGOMETER_NOEXCEPT;
  void (*writer_destroy)(lagometer_writer* writer) LAGOMETER_NOEXCEPT;
  void (*type_destroy)(lagometer_type* type) LAGOMETER_NOEXCEPT;
  void (*node_destroy)(lagometer_node* node) LAGOMETER_NOEXCEPT;
  void (*context_destroy)(lagometer_context* context) LAGOMETER_NOEXCEPT;

  /* Shows where `bytes` of payload may be written. One message at a time per writer.
   * [thread: one at a time per object; in-callback: yes; blocks: bounded; allocates: no] */
  lagometer_status (*borrow)(lagometer_writer* writer, uint64_t bytes, lagometer_message* message) LAGOMETER_NOEXCEPT;
  /* Publishes it. REJECTED: it was not accepted and is gone. [thread: one at a time per object; in-callback: yes;
   * blocks: qos.blocking_ns_max; allocates: no] */
  lagometer_status (*commit)(lagometer_writer* writer, lagometer_message* message) LAGOMETER_NOEXCEPT;
  /* Gives it back unsent. [thread: one at a time per object; in-callback: yes; blocks: never; allocates: no] */
  void (*discard)(lagometer_writer* writer, lagometer_message* message) LAGOMETER_NOEXCEPT;

  /* Up to `max` samples into an array whose elements lie `stride` bytes apart; *taken may be 0 with OK.
   * [thread: one at a time per object; in-callback: yes, of that reader; blocks: never; allocates: no] */
  lagometer_status (*take)(lagometer_reader* reader, lagometer_sample* samples, uint32_t stride, uint32_t max,
                           uint32_t* taken) LAGOMETER_NOEXCEPT;
  /* Gives the samples of one take() back. [thread: one at a time per object; in-callback: yes; blocks: never;
   * allocates: no] */
  void (*release)(lagometer_reader* reader, lagometer_sample* samples, uint32_t stride,
                  uint32_t count) LAGOMETER_NOEXCEPT;

  /* [thread: any; in-callback: no; blocks: bounded; allocates: yes] */
  lagometer_status (*writer_matched)(lagometer_writer* writer, lagometer_matched* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_matched)(lagometer_reader* reader, lagometer_matched* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*writer_counters)(lagometer_writer* writer, lagometer_counters* out) LAGOMETER_NOEXCEPT;
  lagometer_status (*reader_counters)(lagometer_reader* reader, lagometer_counters* out) LAGOMETER_NOEXCEPT;

  /* JSON of the effective settings of an object (LAGOMETER_OBJECT_...): {"settings": {key: {"value":, "default":}},
   * "paste": [{"file": text, "text": text}], "transport": see docs/ADAPTERS.md}. [thread: any; in-callback: no;
   * blocks: bounded; allocates: yes] */
  lagometer_status (*describe)(uint32_t kind, const void* object, lagometer_sink sink, void* user) LAGOMETER_NOEXCEPT;

  /* Waitsets; null as a group where the middleware has nothing to wait on (the sidecar then lists no "waitset").
   * create, attach, destroy: [thread: one at a time per object; in-callback: no; blocks: bounded; allocates: setup] */
  lagometer_status (*waitset_create)(lagometer_context* context, lagometer_waitset** out) LAGOMETER_NOEXCEPT;
  lagometer_status (*waitset_attach)(lagometer_waitset* waitset, lagometer_reader* reader) LAGOMETER_NOEXCEPT;
  /* Until a reader that is attached has data, trigger() was called, or host time `until_ns` is reached (TIMEOUT). It is
   * level-triggered: with data left untaken it returns at once. [thread: waiting thread; in-callback: no; blocks:
   * until_ns; allocates: no] */
  lagometer_status (*waitset_wait)(lagometer_waitset* waitset, int64_t until_ns) LAGOMETER_NOEXCEPT;
  /* Ends one wait, present or next. [thread: any; in-callback: yes; blocks: never; allocates: no] */
  void (*waitset_trigger)(lagometer_waitset* waitset) LAGOMETER_NOEXCEPT;
  void (*waitset_destroy)(lagometer_waitset* waitset) LAGOMETER_NOEXCEPT;

  /* The table of an extension of this object, or null. [thread: any; in-callback: no; blocks: never; allocates: no]
   * Names taken: executor/1 intra/1 serialized/1 forward/1 discovery/1 stamps/1 threads/1 services/1 security/1 shm/1
   * flush/1 loan/1. Each gets a header of its own beside this one. */
  const void* (*extension)(uint32_t kind, void* object, lagometer_string name)LAGOMETER_NOEXCEPT;
} lagometer_adapter_table;

/* The one symbol of the library. Keeps `host`; returns null if it can't work with host->abi_version. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const lagometer_adapter_table* lagometer_adapter(const lagometer_host* host) LAGOMETER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_ADAPTER_H */
