// SPDX-License-Identifier: Apache-2.0
// How often a deadline was missed. The rmw counts; an executor delivers the number, or the caller takes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <rclcpp/rclcpp.hpp>

#include "objects.hpp"

namespace lagometer::ros2 {

class Missed {
 public:
  /// Counts the deadline events of a publisher or subscription, if it has a deadline. rclcpp throws if the rmw has no
  /// such event.
  template <typename Options>
  void watch(const Quality& quality, Options& options) {
    if (quality.deadline_ns == 0) return;
    // It outlives the endpoint if the executor still holds the callback.
    options.event_callbacks.deadline_callback = [total = total_](auto& info) {
      total->store(static_cast<uint64_t>(info.total_count));
    };
    watched_ = true;
  }
  /// The number so far, as a counter of the endpoint; `handlers`: all of its events. Info: the data of this kind of
  /// event.
  template <typename Info, typename Handlers, typename Kind>
  void count(const Handlers& handlers, Kind kind, lagometer_counters& out) const {
    if (!watched_) return;
    const auto handler = handlers.find(kind);
    if (handler == handlers.end()) return;
    // Without a listener no executor spins, but the rmw still has the number.
    const auto news = std::static_pointer_cast<Info>(handler->second->take_data());
    if (news) total_->store(static_cast<uint64_t>(news->total_count));
    out.present |= LAGOMETER_COUNTER_DEADLINE;
    out.deadline_missed = total_->load();
  }

 private:
  std::shared_ptr<std::atomic<uint64_t>> total_ = std::make_shared<std::atomic<uint64_t>>(0);
  bool watched_ = false;
};

}  // namespace lagometer::ros2
