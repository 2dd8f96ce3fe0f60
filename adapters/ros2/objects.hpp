// SPDX-License-Identifier: Apache-2.0
// Context, node, type and waitset of rclcpp as the objects of adapter.h.
#pragma once

#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <string_view>

#include "settings.hpp"
#include "spinner.hpp"

namespace lagometer::ros2 {

/// With `participants: process` one rclcpp::Context, that is one DDS participant, and one executor for all nodes of the
/// process, as in a component container; with `node` each node has its own.
class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  void enable() noexcept {}
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The rclcpp::Context of the process.
  [[nodiscard]] const std::shared_ptr<rclcpp::Context>& shared() const noexcept { return shared_; }
  /// The rclcpp::Context of a node, made if it is to have its own.
  std::shared_ptr<rclcpp::Context> for_node();
  /// The executor of a node in this rclcpp::Context.
  std::shared_ptr<Spinner> spinner_for_node(const std::shared_ptr<rclcpp::Context>& ros_context);
  [[nodiscard]] nlohmann::json describe() const;

 private:
  Settings settings_;
  size_t domain_;
  std::shared_ptr<rclcpp::Context> shared_;
  std::shared_ptr<Spinner> spinner_;
};

/// A node of ROS 2. Its executor turns from the first listener on; a waitset's or a polled reader is in a callback
/// group that no executor serves.
class Node {
 public:
  Node(Context& context, std::string_view name);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
  [[nodiscard]] rclcpp::Node& ros_node() const noexcept { return *ros_node_; }
  /// The callback group for a reader of this dispatch; for a listener's, starts the executor.
  rclcpp::CallbackGroup::SharedPtr group_for(uint32_t dispatch);

  Context& context;

 private:
  std::shared_ptr<rclcpp::Context> ros_context_;
  rclcpp::Node::SharedPtr ros_node_;
  std::shared_ptr<Spinner> spinner_;
};

struct Type {
  Type(Context& context, const lagometer_type_config& config);
  std::string name;
  uint64_t max_bytes;
  void check(uint64_t bytes) const;
};

/// What publishers and subscriptions have in common.
struct Endpoint {
  Endpoint(Node& given, const lagometer_endpoint_config& config);
  [[nodiscard]] rclcpp::QoS qos() const;
  Node& node;
  const Settings& settings;
  const Type& type;
  std::string topic;
  Quality quality;
};

class Reader;

/// A rclcpp::WaitSet that a node's own thread waits on.
class Waitset {
 public:
  explicit Waitset(Context& context);
  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns);
  void trigger() { wake_->trigger(); }
  /// Kept by a weak pointer: it leaves when it ends.
  void add(const rclcpp::SubscriptionBase::SharedPtr& subscription);

 private:
  rclcpp::GuardCondition::SharedPtr wake_;
  rclcpp::WaitSet set_;
};

}  // namespace lagometer::ros2
