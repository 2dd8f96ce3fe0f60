// SPDX-License-Identifier: Apache-2.0
// One of rclcpp's executors, spinning on its own thread from its first node on.
#pragma once

#include <atomic>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <thread>

#include "settings.hpp"

namespace lagometer::ros2 {

class Spinner {
 public:
  Spinner(const Settings& settings, const std::shared_ptr<rclcpp::Context>& context);
  Spinner(const Spinner&) = delete;
  Spinner& operator=(const Spinner&) = delete;
  /// Waits for a running callback.
  ~Spinner();
  /// The first call starts the thread and waits until it spins.
  void add(const rclcpp::Node::SharedPtr& node);
  void remove(const rclcpp::Node::SharedPtr& node);

 private:
  void spin() noexcept;

  std::unique_ptr<rclcpp::Executor> executor_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
};

}  // namespace lagometer::ros2
