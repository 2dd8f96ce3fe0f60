/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "timers/1" of a node (LAGOMETER_OBJECT_NODE): timers that belong to the middleware's executor, whatever
 * that is: the thread or threads that call the node's readers back. executor/1 says which executor that is.
 *
 * With dispatch LISTENER a node's schedule is kept by a thread of the host's, unless the node has this extension: then
 * the executor that calls the node's readers fires it, too, and is late when it is busy, as in an application. Return
 * null where that is not wanted.
 */
#ifndef LAGOMETER_TIMERS_H
#define LAGOMETER_TIMERS_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_TIMERS_EXTENSION "timers/1"

typedef struct lagometer_timer lagometer_timer;

typedef struct lagometer_timers_table {
  uint32_t size;        /* sizeof of this struct as the adapter knows it */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. A timer that is not armed. `callback` is called with `user`, never twice at once, and may call arm() and
   * the writers of the node. Status: OK, UNSUPPORTED. [thread: one at a time per object; state: created; in-callback:
   * no; blocks: bounded; allocates: setup] */
  lagometer_status (*create)(lagometer_node* node, void (*callback)(void* user), void* user,
                             lagometer_timer** out) LAGOMETER_NOEXCEPT;
  /* Required. Fires once, at host time `at_ns` or as soon after it as the executor comes to it; INT64_MAX: not at all.
   * Takes the place of an earlier time. A firing too early does no harm. Status: OK. [thread: any, one at a time;
   * state: created; in-callback: yes; blocks: never; allocates: no] */
  lagometer_status (*arm)(lagometer_timer* timer, int64_t at_ns) LAGOMETER_NOEXCEPT;
  /* Required. No callback runs afterwards. Before its node. [thread: one at a time per object; state: created;
   * in-callback: no; blocks: until a callback under way has returned; allocates: no] */
  void (*destroy)(lagometer_timer* timer) LAGOMETER_NOEXCEPT;
} lagometer_timers_table;
#define LAGOMETER_TIMERS_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_timers_table, destroy)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_TIMERS_H */
