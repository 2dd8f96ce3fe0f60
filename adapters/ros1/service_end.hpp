// SPDX-License-Identifier: Apache-2.0
// Both ends of a service of ROS 1. Its calls block on either side: a client's are made by a thread, and a server's
// callback returns the reply.
#pragma once

#include <cstdint>
#include <memory>

#include "objects.hpp"
#include "reader.hpp"
#include "writer.hpp"

namespace lagometer::ros1 {

/// What the reader and the writer of a client, or of a server, share.
class ServiceEnd {
 public:
  virtual ~ServiceEnd() = default;
  ServiceEnd(const ServiceEnd&) = delete;
  ServiceEnd& operator=(const ServiceEnd&) = delete;

  /// What the writer sends by.
  virtual std::unique_ptr<Writer::Outlet> outlet() = 0;
  /// Brings messages to this reader, by callbacks in `queue`, until close().
  virtual void open(Reader& reader, const std::shared_ptr<Queue>& queue) = 0;
  virtual void close() noexcept = 0;
  /// 1: this client has a connection to a server; a server's clients are not told.
  virtual void matched(lagometer_matched& out) const noexcept = 0;

 protected:
  ServiceEnd() = default;
};

std::shared_ptr<ServiceEnd> make_client_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);
std::shared_ptr<ServiceEnd> make_server_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);

}  // namespace lagometer::ros1
