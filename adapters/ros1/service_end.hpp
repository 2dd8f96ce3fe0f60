// SPDX-License-Identifier: Apache-2.0
// Both ends of a ROS 1 service. Its calls block on both sides: a thread makes a client's calls, and a server's callback
// returns the reply.
#pragma once

#include <cstdint>
#include <memory>

#include "objects.hpp"
#include "reader.hpp"
#include "writer.hpp"

namespace lagometer::ros1 {

/// What the reader and the writer of a client or server share.
class ServiceEnd {
 public:
  virtual ~ServiceEnd() = default;
  ServiceEnd(const ServiceEnd&) = delete;
  ServiceEnd& operator=(const ServiceEnd&) = delete;

  /// What the writer sends through.
  virtual std::unique_ptr<Writer::Outlet> outlet() = 0;
  /// Delivers messages to this reader, through callbacks in `queue`, until close().
  virtual void open(Reader& reader, const std::shared_ptr<Queue>& queue) = 0;
  virtual void close() noexcept = 0;
  /// 1: this client has a connection to a server. A server does not know its clients.
  virtual void matched(lagometer_matched& out) const noexcept = 0;

 protected:
  ServiceEnd() = default;
};

std::shared_ptr<ServiceEnd> make_client_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);
std::shared_ptr<ServiceEnd> make_server_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);

}  // namespace lagometer::ros1
