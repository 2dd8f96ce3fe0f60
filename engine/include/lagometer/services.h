/* SPDX-License-Identifier: Apache-2.0
 *
 * Extension "services/1" of a node (LAGOMETER_OBJECT_NODE): request and reply, as the middleware itself has them
 * (services of ROS, queries of Zenoh, request sockets). A middleware that has only topics does not offer it.
 *
 * WHAT THERE IS
 *   A client sends requests and gets the replies to its own requests alone; a server gets the requests of all clients
 *   of the service. Each is a pair of a writer and a reader, which are used, asked, enabled, attached to waitsets and
 *   destroyed like any other: `request->topic` and `reply->topic` are both the name of the service. The two of a pair
 *   are of one node, and are used by one thread at a time together, but for what adapter.h lets any thread call; until
 *   the start a second thread may send on the writer of a client's requests while the reader of its replies is used.
 *   A service has one server. Several requests of one client may be under way, and replies may overtake each other.
 *
 * HOW A REPLY FINDS ITS REQUEST
 *   The host calls answer() with a request that it has taken and not yet released, and the next message that is
 *   committed on the server's writer goes to who sent that request. Each request is answered once at most.
 *
 * WHAT IS LOST
 *   Nothing is waited for: commit() of a request returns when the middleware has it. A request without a server may be
 *   dropped or kept. Until every side has heard the other, the host sends requests that only ask "are you there".
 */
#ifndef LAGOMETER_SERVICES_H
#define LAGOMETER_SERVICES_H

#include "lagometer/adapter.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LAGOMETER_SERVICES_EXTENSION "services/1"

typedef struct lagometer_services_table {
  uint32_t size;        /* sizeof of this struct as the adapter knows it */
  uint32_t abi_version; /* LAGOMETER_ABI_VERSION */

  /* Required. A client: the writer of its requests, the reader of the replies. Both are set with OK alone. Status: OK,
   * INVALID, UNSUPPORTED. [thread: one at a time per object; state: any; in-callback: no; blocks: bounded; allocates:
   * setup] */
  lagometer_status (*client_create)(lagometer_node* node, const lagometer_endpoint_config* request,
                                    const lagometer_endpoint_config* reply, lagometer_writer** requests,
                                    lagometer_reader** replies) LAGOMETER_NOEXCEPT;
  /* Required. A server: the reader of requests, the writer of replies. [as client_create] */
  lagometer_status (*server_create)(lagometer_node* node, const lagometer_endpoint_config* request,
                                    const lagometer_endpoint_config* reply, lagometer_reader** requests,
                                    lagometer_writer** replies) LAGOMETER_NOEXCEPT;
  /* Required. What is committed next on the writer of a server's replies answers this sample of its own reader; before
   * borrow(). A discarded reply leaves the request unanswered. Status: OK, INVALID (it has been answered). [thread: one
   * at a time per object; state: enabled; in-callback: yes; blocks: never; allocates: no] */
  lagometer_status (*answer)(lagometer_writer* replies, const lagometer_sample* request) LAGOMETER_NOEXCEPT;
} lagometer_services_table;
#define LAGOMETER_SERVICES_TABLE_SIZE_1_0 LAGOMETER_END_OF(lagometer_services_table, answer)

#ifdef __cplusplus
}
#endif
#endif /* LAGOMETER_SERVICES_H */
