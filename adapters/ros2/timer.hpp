// SPDX-License-Identifier: Apache-2.0
// The extension "timers/1" of a node: an rclcpp timer, which the executor fires between other callbacks.
#pragma once

#include <memory>
#include <mutex>
#include <rclcpp/rclcpp.hpp>

#include "lagometer/timers.h"
#include "objects.hpp"

namespace lagometer::ros2 {

class Timer {
 public:
  Timer(Node& node, void (*callback)(void* user), void* user);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  /// Waits for a running callback.
  ~Timer();
  /// Fires at this time; kNever: never.
  void arm(int64_t at_ns);

 private:
  /// The executor may still hold the callback when the timer is gone.
  struct Door {
    std::mutex mutex;
    bool open = true;
  };

  [[nodiscard]] bool comes_by_itself(int64_t at_ns, int64_t now) const;
  void set_period(int64_t period_ns);

  std::shared_ptr<Door> door_ = std::make_shared<Door>();
  rclcpp::TimerBase::SharedPtr timer_;
  int64_t last_at_ns_ = 0;
};

/// The table of functions.
const lagometer_timers_table& timers_table() noexcept;

}  // namespace lagometer::ros2
