// SPDX-License-Identifier: Apache-2.0
// Context, node, type and waitset of roscpp as the objects of adapter.h.
#pragma once

#include <ros/node_handle.h>
#include <ros/spinner.h>

#include <memory>
#include <string>
#include <string_view>

#include "queue.hpp"
#include "settings.hpp"

namespace lagometer::ros1 {

/// Its own settings; the ROS node belongs to the process and is shared by all contexts.
class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] ros::NodeHandle& ros_node() const noexcept { return *ros_node_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }

 private:
  Settings settings_;
  ros::NodeHandle* ros_node_;
};

/// A part of the ROS node with its own callback queue for listeners, and a single-threaded spinner, as in a nodelet.
class Node {
 public:
  Node(Context& given, std::string_view) : context(given) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
  /// The queue that the spinner serves; the first call starts the spinner.
  std::shared_ptr<Queue> spun_queue();

  Context& context;

 private:
  std::shared_ptr<Queue> queue_;
  std::unique_ptr<ros::AsyncSpinner> spinner_;
};

struct Type {
  Type(Context& context, const lagometer_type_config& config);
  bool fixed;
  uint64_t max_bytes;
};

/// What publishers and subscribers have in common.
struct Endpoint {
  Endpoint(Node& node, const lagometer_endpoint_config& config);
  ros::NodeHandle& ros_node;
  const Settings& settings;
  const Type& type;
  std::string topic;
  Quality quality;
  bool udp;
};

/// describe() for an end of a service: its calls go over TCP, even within a process.
nlohmann::json describe_service(const Endpoint& endpoint);

class Reader;

/// A callback queue; a node's own thread waits on it and calls its callbacks.
class Waitset {
 public:
  explicit Waitset(Context&) {}
  void attach(Reader& reader) const;
  lagometer_status wait(int64_t until_ns) { return queue_->wait(until_ns); }
  void trigger() { queue_->trigger(); }

 private:
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
};

}  // namespace lagometer::ros1
