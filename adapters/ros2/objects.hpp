// SPDX-License-Identifier: Apache-2.0
// Context, node, type and waitset of rclcpp as the objects of adapter.h.
#pragma once

#include <memory>
#include <optional>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <string_view>

#include "settings.hpp"
#include "spinner.hpp"

namespace lagometer::ros2 {

/// rclcpp's intra-process communication only works between nodes of one context: messages between two contexts of a
/// domain would go through the rmw, but be reported as intra-process.
class OnlyOne {
 public:
  /// Throws Error(LAGOMETER_INVALID): this process already has one for the domain.
  explicit OnlyOne(size_t domain);
  OnlyOne(const OnlyOne&) = delete;
  OnlyOne& operator=(const OnlyOne&) = delete;
  ~OnlyOne();

 private:
  size_t domain_;
};

/// One rclcpp::Context, which is one DDS participant. Each of its nodes has its own executor, or all share one, as in a
/// component container (extension "executor/1").
class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  void enable() noexcept {}
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  [[nodiscard]] const std::shared_ptr<rclcpp::Context>& ros_context() const noexcept { return ros_context_; }
  /// One executor for all nodes. Throws Error(LAGOMETER_INVALID): there is a node.
  void share_executor();
  /// The executor for one more node.
  std::shared_ptr<Spinner> spinner_for_node();
  void node_made() noexcept { has_nodes_ = true; }
  [[nodiscard]] nlohmann::json describe() const;

 private:
  Settings settings_;
  std::optional<OnlyOne> hands_over_;  // with intra_process
  std::shared_ptr<rclcpp::Context> ros_context_;
  bool shares_executor_ = false;
  bool has_nodes_ = false;
  std::shared_ptr<Spinner> spinner_;  // shared by all nodes
};

/// A ROS 2 node. Its executor spins from the first listener on; a reader with a waitset or polling is in a callback
/// group that no executor serves.
class Node {
 public:
  Node(Context& context, std::string_view name);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();
  [[nodiscard]] rclcpp::Node& ros_node() const noexcept { return *ros_node_; }
  /// The callback group for a reader with this dispatch; for a listener, starts the executor.
  rclcpp::CallbackGroup::SharedPtr group_for(uint32_t dispatch);

  Context& context;

 private:
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

/// An rclcpp::WaitSet on which a node's own thread waits.
class Waitset {
 public:
  explicit Waitset(Context& context);
  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns);
  void trigger() { wake_->trigger(); }
  /// Kept as a weak pointer: it leaves when it ends. So do the other two.
  void add(const rclcpp::SubscriptionBase::SharedPtr& subscription);
  void add(const rclcpp::ClientBase::SharedPtr& client) { set_.add_client(client); }
  void add(const rclcpp::ServiceBase::SharedPtr& service) { set_.add_service(service); }

 private:
  rclcpp::GuardCondition::SharedPtr wake_;
  rclcpp::WaitSet set_;
};

}  // namespace lagometer::ros2
