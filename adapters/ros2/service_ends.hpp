// SPDX-License-Identifier: Apache-2.0
// Request and reply: rclcpp's clients and services, which carry bytes (extension "services/1").
#pragma once

#include <memory>
#include <utility>

#include "reader.hpp"
#include "writer.hpp"

namespace lagometer::ros2 {

/// A client or a server of rclcpp, shared by its writer and its reader. Whichever of the two is enabled first creates
/// it.
class ServiceEnd {
 public:
  virtual ~ServiceEnd() = default;
  virtual std::unique_ptr<Writer::Outlet> outlet() = 0;
  virtual std::unique_ptr<Reader::Inlet> inlet() = 0;
  /// Where callbacks deliver messages; set before the first is enabled.
  std::shared_ptr<Reader::Door> door;

 protected:
  ServiceEnd() = default;
  ServiceEnd(const ServiceEnd&) = default;
  ServiceEnd& operator=(const ServiceEnd&) = default;
};

using Ends = std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>>;

/// Create both ends of a client or server. Throw Error: settings that ROS 2 services do not have.
Ends make_client(Node& node, const lagometer_endpoint_config& request, const lagometer_endpoint_config& reply);
Ends make_server(Node& node, const lagometer_endpoint_config& request, const lagometer_endpoint_config& reply);

}  // namespace lagometer::ros2
