/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "stamps/1" of a writer (LAGOMETER_OBJECT_WRITER) and of a reader (LAGOMETER_OBJECT_READER): when a message
 * was in which layer of the middleware.
 *
 * WHAT IS STAMPED
 *   A layer's number alone stamps the moment it is entered; with LAGOMETER_LAYER_END, the moment it is left.
 *     SERIALISE    the payload is turned into what goes on the wire      (sender)
 *     WRITE        the middleware's own call that sends                  (sender)
 *     SIGNALLED    the middleware's own thread noticed the message       (receiver)
 *     WOKEN        the thread that takes woke up                         (receiver)
 *     TAKE         the middleware's own call that takes; messages taken by one call share its stamp
 *     DESERIALISE  what came over the wire is turned into the payload    (receiver)
 *     VENDOR + n   the adapter's own, named in its sidecar
 *   Leave out a layer that a message does not go through, such as serialising a loan. Never invent a time.
 *
 * HOW STAMPS TRAVEL
 *   On the caller's thread: in the lists of lagometer_message (filled by commit()) and lagometer_sample (filled by
 *   take()), at most LAGOMETER_STAMPS_MAX, in the order in which they were taken. Before writing to a list, an adapter
 *   checks that the struct's `size` covers it. commit() and take() set `count`, to 0 if there are no stamps.
 *   On any other thread: through host->stamp() if the sequence number alone identifies the message, or through
 *   host->stamp_keyed() if host->size covers it. The given `user` identifies the endpoint.
 *
 * THE KEY
 *   It says which stamps belong to which message, and is the same on both sides, in all processes:
 *     LAGOMETER_KEY_SEQUENCE     writer_id and middleware_sequence
 *     LAGOMETER_KEY_SOURCE_TIME  writer_id and source_time_ns, if the middleware gives readers no sequence number
 *     LAGOMETER_KEY_NONE         nothing, if the middleware gives both sides nothing in common: every field is 0, and
 *                                stamps travel only in the lists
 *   writer_id comes from an identifier that the middleware uses for the writer everywhere (such as a GUID), never from
 *   a handle local to one process. A writer never uses one key for two messages.
 *   commit() sets `key` of the message; take() sets the fields of the same names in the sample. Unknown fields are 0.
 *
 * WITHOUT A REQUEST FOR STAMPS
 *   If ask() was not called, or called with 0, neither lists nor keys are filled, and no clock is read for them. The
 *   sample's other fields are filled as usual, but its writer_id need not be the same in all processes.
 */
#ifndef LAGOMETER_STAMPS_H
#define LAGOMETER_STAMPS_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_STAMPS_EXTENSION "stamps/1"

#define LAGOMETER_LAYER_NONE 0u         /* never reported by an adapter */
#define LAGOMETER_LAYER_END 0x80000000u /* combined with a layer: the message leaves it */
#define LAGOMETER_CPU_UNKNOWN 65535u

/* Layers in a mask: bit n for layer n, and one bit for all vendor layers. */
#define LAGOMETER_STAMPS_SERIALISE (1ull << LAGOMETER_LAYER_SERIALISE)
#define LAGOMETER_STAMPS_WRITE (1ull << LAGOMETER_LAYER_WRITE)
#define LAGOMETER_STAMPS_SIGNALLED (1ull << LAGOMETER_LAYER_SIGNALLED)
#define LAGOMETER_STAMPS_WOKEN (1ull << LAGOMETER_LAYER_WOKEN)
#define LAGOMETER_STAMPS_TAKE (1ull << LAGOMETER_LAYER_TAKE)
#define LAGOMETER_STAMPS_DESERIALISE (1ull << LAGOMETER_LAYER_DESERIALISE)
#define LAGOMETER_STAMPS_VENDOR (1ull << 32)

#define LAGOMETER_KEY_NONE 0u
#define LAGOMETER_KEY_SEQUENCE 1u
#define LAGOMETER_KEY_SOURCE_TIME 2u

typedef struct lagometer_stamps_table {
  uint32_t size;        /* sizeof this struct in the adapter's build */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */
  uint64_t layers;      /* the layers that this kind of endpoint can stamp */
  uint32_t key;         /* LAGOMETER_KEY_... */
  uint32_t reserved;

  /* Required. From now on the endpoint stamps these layers. Called before the endpoint is enabled. Status: OK, INVALID
   * (a bit that is not in `layers`). [thread: one at a time per object; state: created; in-callback: no; blocks: never;
   * allocates: setup] */
  lagometer_status (*ask)(void* endpoint, uint64_t layers) LAGOMETER_NOEXCEPT;
} lagometer_stamps_table;
#define LAGOMETER_STAMPS_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_stamps_table, ask)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_STAMPS_H */
