/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "executor/1" of a context (LAGOMETER_OBJECT_CONTEXT): executors that call the readers of its nodes back
 * (dispatch LISTENER) and fire their timers (timers/1). Only for a middleware that has executors: one that calls back
 * on threads of its own returns null. The sidecar says so, too ("executor": true).
 */
#ifndef LAGOMETER_EXECUTOR_H
#define LAGOMETER_EXECUTOR_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_EXECUTOR_EXTENSION "executor/1"

typedef struct lagometer_executor_table {
  uint32_t size;        /* sizeof of this struct as the adapter knows it */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. From now on one executor serves all nodes of this context: what it calls, it calls one after another,
   * unless the options ask for an executor of several threads. Without this call each node has an executor of its own.
   * Before the context's first node. Status: OK, INVALID (there is a node). [thread: one at a time per object; state:
   * created; in-callback: no; blocks: bounded; allocates: setup] */
  lagometer_status (*share)(lagometer_context* context) LAGOMETER_NOEXCEPT;
} lagometer_executor_table;
#define LAGOMETER_EXECUTOR_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_executor_table, share)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_EXECUTOR_H */
