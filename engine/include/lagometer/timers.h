/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "timers/1" of a node (LAGOMETER_OBJECT_NODE): timers that belong to the middleware's executor: the thread
 * or threads that call back the node's readers. executor/1 says which executor that is.
 *
 * With dispatch LISTENER, a thread of the host keeps a node's schedule, unless the node has this extension: then the
 * executor that calls the node's readers also fires the schedule, and is late when it is busy, as in an application.
 * Return null to avoid that.
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
  uint32_t size;        /* sizeof this struct in the adapter's build */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. Creates a timer that is not armed. `callback` is called with `user`, never concurrently, and may call
   * arm() and the writers of the node. Status: OK, UNSUPPORTED. [thread: one at a time per object; state: created;
   * in-callback: no; blocks: bounded; allocates: setup] */
  lagometer_status (*create)(lagometer_node* node, void (*callback)(void* user), void* user,
                             lagometer_timer** out) LAGOMETER_NOEXCEPT;
  /* Required. The timer fires once, at host time `at_ns` or as soon as the executor gets to it; INT64_MAX: never. This
   * replaces an earlier time. Firing too early does no harm. Status: OK. [thread: any, one at a time; state: created;
   * in-callback: yes; blocks: never; allocates: no] */
  lagometer_status (*arm)(lagometer_timer* timer, int64_t at_ns) LAGOMETER_NOEXCEPT;
  /* Required. No callback runs afterwards. Called before its node is destroyed. [thread: one at a time per object;
   * state: created; in-callback: no; blocks: until a callback under way has returned; allocates: no] */
  void (*destroy)(lagometer_timer* timer) LAGOMETER_NOEXCEPT;
} lagometer_timers_table;
#define LAGOMETER_TIMERS_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_timers_table, destroy)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_TIMERS_H */
