// SPDX-License-Identifier: Apache-2.0
#include "process.hpp"

#include <ros/console.h>
#include <ros/init.h>
#include <ros/master.h>
#include <ros/network.h>

#include <cstdlib>
#include <string>

#include "binding.hpp"
#include "graph_name.hpp"

namespace lagometer::ros1 {
namespace {

constexpr double kMasterTimeout_s = 10;

/// roscpp aborts on an address that it can't parse, so this parses it first.
void check_master_address() {
  const char* address = std::getenv("ROS_MASTER_URI");
  if (address == nullptr) return;
  std::string host;
  uint32_t port = 0;
  if (!ros::network::splitURI(address, host, port) || port == 0) {
    throw Error(LAGOMETER_INVALID,
                std::string("ros1: ROS_MASTER_URI must be like http://127.0.0.1:11311, not '") + address + "'");
  }
}

/// roscpp logs information to standard output, which this disables; warnings and errors go to standard error and stay.
void silence_information() {
  if (ros::console::set_logger_level("ros", ros::console::levels::Warn)) ros::console::notifyLoggerLevelsChanged();
}

}  // namespace

ros::NodeHandle& Process::node(std::string_view name, std::string_view directory, std::string_view address) {
  // Created after roscpp's own statics, so destroyed before them.
  static Process process(name, directory, address);
  return *process.handle_;
}

Process::Process(std::string_view name, std::string_view directory, std::string_view address) {
  check_master_address();
  const ros::M_string remappings{{"__ip", std::string(address)}, {"__log", std::string(directory) + "/roscpp.log"}};
  constexpr uint32_t kOptions =
      ros::init_options::NoSigintHandler | ros::init_options::NoRosout | ros::init_options::AnonymousName;
  // A name must not begin with a digit; two nodes with one name would shut each other down.
  ros::init(remappings, "lagometer_" + graph_name(name, '_'), kOptions);
  silence_information();
  if (!ros::master::check()) {
    throw Error(LAGOMETER_FAILED, "ros1: no ROS master answers at " + ros::master::getURI() +
                                      ": start one (rosmaster --core) and name it in ROS_MASTER_URI");
  }
  ros::master::setRetryTimeout(ros::WallDuration(kMasterTimeout_s));
  handle_.emplace();
}

Process::~Process() { ros::shutdown(); }

}  // namespace lagometer::ros1
