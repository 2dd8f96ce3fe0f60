/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "executor/1" of a context (LAGOMETER_OBJECT_CONTEXT): executors that call back the readers of its nodes
 * (dispatch LISTENER) and fire their timers (timers/1). Only for middleware that has executors: return null if the
 * middleware calls back on its own threads. The sidecar also declares it ("executor": true).
 */
#ifndef LAGOMETER_EXECUTOR_H
#define LAGOMETER_EXECUTOR_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_EXECUTOR_EXTENSION "executor/1"

typedef struct lagometer_executor_table {
  uint32_t size;        /* sizeof this struct in the adapter's build */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. From now on one executor serves all nodes of this context and runs their callbacks one after another,
   * unless the options ask for a multi-threaded executor. Without this call each node has its own executor. Called
   * before the context's first node is created. Status: OK, INVALID (there is a node). [thread: one at a time per
   * object; state: created; in-callback: no; blocks: bounded; allocates: setup] */
  lagometer_status (*share)(lagometer_context* context) LAGOMETER_NOEXCEPT;
} lagometer_executor_table;
#define LAGOMETER_EXECUTOR_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_executor_table, share)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_EXECUTOR_H */
