/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "services/1" of a node (LAGOMETER_OBJECT_NODE): the middleware's own request and reply (ROS services, Zenoh
 * queries, request sockets). Middleware that has only topics does not offer it.
 *
 * WHAT THERE IS
 *   A client sends requests and gets only the replies to its own requests. A server gets the requests of all clients
 *   of the service. Each is a pair of a writer and a reader, which are used, queried, enabled, attached to waitsets and
 *   destroyed like any other. `request->topic` and `reply->topic` are both the name of the service. The writer and the
 *   reader of a pair belong to one node. One thread at a time uses the pair, except for functions that adapter.h lets
 *   any thread call. Until the start, a second thread may send on a client's request writer while its reply reader is
 *   in use.
 *   A service has one server. Several requests of one client may be in flight, and replies may overtake each other.
 *
 * HOW A REPLY FINDS ITS REQUEST
 *   The host calls answer() with a request that it has taken and not yet released. The next message committed on the
 *   server's writer goes to the sender of that request. Each request is answered at most once.
 *
 * WHAT IS LOST
 *   Nothing waits: commit() of a request returns when the middleware has it. A request without a server may be dropped
 *   or kept. Until each side has heard the other, the host sends requests that only ask "are you there".
 */
#ifndef LAGOMETER_SERVICES_H
#define LAGOMETER_SERVICES_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_SERVICES_EXTENSION "services/1"

typedef struct lagometer_services_table {
  uint32_t size;        /* sizeof this struct in the adapter's build */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. Creates a client: the writer of its requests and the reader of its replies. Sets both only with OK.
   * Status: OK, INVALID, UNSUPPORTED. [thread: one at a time per object; state: any; in-callback: no; blocks: bounded;
   * allocates: setup] */
  lagometer_status (*client_create)(lagometer_node* node, const lagometer_endpoint_config* request,
                                    const lagometer_endpoint_config* reply, lagometer_writer** requests,
                                    lagometer_reader** replies) LAGOMETER_NOEXCEPT;
  /* Required. Creates a server: the reader of requests and the writer of replies. [as client_create] */
  lagometer_status (*server_create)(lagometer_node* node, const lagometer_endpoint_config* request,
                                    const lagometer_endpoint_config* reply, lagometer_reader** requests,
                                    lagometer_writer** replies) LAGOMETER_NOEXCEPT;
  /* Required. The next message committed on the server's reply writer answers this sample of its request reader. Called
   * before borrow(). If the reply is discarded, the request stays unanswered. Status: OK, INVALID (it has been
   * answered). [thread: one at a time per object; state: enabled; in-callback: yes; blocks: never; allocates: no] */
  lagometer_status (*answer)(lagometer_writer* replies, const lagometer_sample* request) LAGOMETER_NOEXCEPT;
} lagometer_services_table;
#define LAGOMETER_SERVICES_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_services_table, answer)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_SERVICES_H */
