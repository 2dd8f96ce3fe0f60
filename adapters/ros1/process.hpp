// SPDX-License-Identifier: Apache-2.0
// The ROS node that this process is: roscpp can be initialised once in a process, and has one name there.
#pragma once

#include <ros/node_handle.h>

#include <optional>
#include <string_view>

namespace lagometer::ros1 {

class Process {
 public:
  /// The node; the first call makes it, registers it with the master and gives it its name, the end of the process
  /// ends it. `directory`: where files of roscpp may lie; `address`: where
  /// other nodes reach this one. Throws lagometer::Error if no master answers.
  static ros::NodeHandle& node(std::string_view name, std::string_view directory, std::string_view address);

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  Process(std::string_view name, std::string_view directory, std::string_view address);
  ~Process();

  std::optional<ros::NodeHandle> handle_;
};

}  // namespace lagometer::ros1
