/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "stamps/1" of a writer (LAGOMETER_OBJECT_WRITER) and of a reader (LAGOMETER_OBJECT_READER): when a message
 * was in which layer of the middleware.
 *
 * WHAT IS STAMPED
 *   A layer's number is the moment at which it is entered, with LAGOMETER_LAYER_END the moment at which it is left.
 *     SERIALISE    the payload is turned into what goes on the wire      (sender)
 *     WRITE        the middleware's own call that sends                  (sender)
 *     SIGNALLED    the middleware's own thread noticed the message       (receiver)
 *     WOKEN        the thread that takes was woken                       (receiver)
 *     TAKE         the middleware's own call that takes; one call may take several messages, which then share it
 *     DESERIALISE  what came over the wire is turned into the payload    (receiver)
 *     VENDOR + n   the adapter's own, named in its sidecar
 *   A layer that a message does not go through, such as serialising a loan, is left out. No time is made up.
 *
 * HOW STAMPS TRAVEL
 *   On the thread of the caller: in the lists of lagometer_message (commit() fills it) and lagometer_sample (take()
 *   fills it), at most LAGOMETER_STAMPS_MAX, in the order in which they were taken. Before it writes there an adapter
 *   looks whether `size` of the struct covers the list. commit() and take() set `count`, to 0 if there are none.
 *   On any other thread: by host->stamp(), if the message is known by its sequence number alone, or by
 *   host->stamp_keyed(), where host->size covers it. The endpoint is the one whose `user` is given.
 *
 * THE KEY
 *   What tells which stamps belong to which message. It is the same on both sides, in all processes:
 *     LAGOMETER_KEY_SEQUENCE     writer_id and middleware_sequence
 *     LAGOMETER_KEY_SOURCE_TIME  writer_id and source_time_ns, of a middleware that tells readers no sequence
 *   writer_id is drawn from what the middleware knows the writer by everywhere (such as a GUID), never from a handle
 *   that one process gave it. A writer never gives two messages one key.
 *   commit() sets `key` of the message, take() the fields of these names in the sample. What is not known is 0.
 *
 * WHEN NOBODY ASKED
 *   ask() was not called, or with 0: neither lists nor keys are filled, and no clock is read for them. What a sample
 *   says beyond its stamps it says as ever, but its writer_id need not be the same in all processes.
 */
#ifndef LAGOMETER_STAMPS_H
#define LAGOMETER_STAMPS_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_STAMPS_EXTENSION "stamps/1"

#define LAGOMETER_LAYER_NONE 0u         /* never given by an adapter */
#define LAGOMETER_LAYER_END 0x80000000u /* together with a layer: it is left */
#define LAGOMETER_CPU_UNKNOWN 65535u

/* Layers in a mask: bit n for layer n, and one bit for all of a vendor's. */
#define LAGOMETER_STAMPS_SERIALISE (1ull << LAGOMETER_LAYER_SERIALISE)
#define LAGOMETER_STAMPS_WRITE (1ull << LAGOMETER_LAYER_WRITE)
#define LAGOMETER_STAMPS_SIGNALLED (1ull << LAGOMETER_LAYER_SIGNALLED)
#define LAGOMETER_STAMPS_WOKEN (1ull << LAGOMETER_LAYER_WOKEN)
#define LAGOMETER_STAMPS_TAKE (1ull << LAGOMETER_LAYER_TAKE)
#define LAGOMETER_STAMPS_DESERIALISE (1ull << LAGOMETER_LAYER_DESERIALISE)
#define LAGOMETER_STAMPS_VENDOR (1ull << 32)

#define LAGOMETER_KEY_SEQUENCE 1u
#define LAGOMETER_KEY_SOURCE_TIME 2u

typedef struct lagometer_stamps_table {
  uint32_t size;        /* sizeof of this struct as the adapter knows it */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */
  uint64_t layers;      /* that this kind of endpoint can stamp */
  uint32_t key;         /* LAGOMETER_KEY_... */
  uint32_t reserved;

  /* Required. From now on the endpoint stamps these of its layers. Before the endpoint is enabled. Status: OK, INVALID
   * (a bit that is not in `layers`). [thread: one at a time per object; state: created; in-callback: no; blocks: never;
   * allocates: setup] */
  lagometer_status (*ask)(void* endpoint, uint64_t layers) LAGOMETER_NOEXCEPT;
} lagometer_stamps_table;
#define LAGOMETER_STAMPS_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_stamps_table, ask)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_STAMPS_H */
