// SPDX-License-Identifier: Apache-2.0
// The ROS node of this process: roscpp can be initialised only once per process, with one name.
#pragma once

#include <ros/node_handle.h>

#include <optional>
#include <string_view>

namespace lagometer::ros1 {

class Process {
 public:
  /// The node. The first call creates it, registers it with the master and gives it its name; it ends with the process.
  /// `directory`: for roscpp's files; `address`: where other nodes reach this one. Throws lagometer::Error if no master
  /// answers.
  static ros::NodeHandle& node(std::string_view name, std::string_view directory, std::string_view address);

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  Process(std::string_view name, std::string_view directory, std::string_view address);
  ~Process();

  std::optional<ros::NodeHandle> handle_;
};

}  // namespace lagometer::ros1
