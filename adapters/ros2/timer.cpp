// SPDX-License-Identifier: Apache-2.0
#include "timer.hpp"

#include <rcl/timer.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace lagometer::ros2 {
namespace {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();
constexpr auto kUntilArmed = std::chrono::hours(24);
// A timer that would fire by itself this soon after the wanted time is left alone.
constexpr int64_t kSlack_ns = 20'000;

}  // namespace

Timer::Timer(Node& node, void (*callback)(void* user), void* user) {
  const auto called = [door = door_, callback, user] {
    const std::scoped_lock lock(door->mutex);
    if (door->open) callback(user);
  };
  timer_ = node.ros_node().create_wall_timer(kUntilArmed, called, node.group_for(LAGOMETER_DISPATCH_LISTENER));
  timer_->cancel();
}

Timer::~Timer() {
  {
    const std::scoped_lock lock(door_->mutex);
    door_->open = false;
  }
  timer_->cancel();
}

// A periodic schedule becomes a periodic timer, as in an application. It is set only twice in all, because setting it
// wakes the executor once more. The period set before a firing applies after it. So the first firing is set from the
// first time, the second is set again, and from then on the timer's own next time is the schedule's.
void Timer::arm(int64_t at_ns) {
  if (at_ns == kNever_ns) return timer_->cancel();
  const int64_t now = now_ns();
  const int64_t step_ns = at_ns - std::exchange(last_at_ns_, at_ns);
  if (comes_by_itself(at_ns, now)) return;
  set_period(std::max<int64_t>(at_ns - now, 0));
  timer_->reset();
  if (step_ns > 0 && step_ns != at_ns) set_period(step_ns);
}

bool Timer::comes_by_itself(int64_t at_ns, int64_t now) const {
  if (timer_->is_canceled()) return false;
  const int64_t early_ns = now + timer_->time_until_trigger().count() - at_ns;
  return early_ns >= 0 && early_ns <= kSlack_ns;
}

void Timer::set_period(int64_t period_ns) {
  int64_t before_ns = 0;
  const auto handle = std::const_pointer_cast<rcl_timer_t>(timer_->get_timer_handle());
  if (rcl_timer_exchange_period(handle.get(), period_ns, &before_ns) != RCL_RET_OK) {
    const std::string said = rcl_get_error_string().str;
    rcl_reset_error();
    throw Error(LAGOMETER_FAILED, "ros2: setting a timer's period: " + said);
  }
}

const lagometer_timers_table& timers_table() noexcept {
  static constexpr lagometer_timers_table kTable{
      .size = sizeof(lagometer_timers_table),
      .abi_version = LAGOMETER_ABI_VERSION,
      .create =
          [](lagometer_node* node, void (*callback)(void*), void* user, lagometer_timer** out) noexcept {
            return guarded([&] {
              *out = reinterpret_cast<lagometer_timer*>(
                  std::make_unique<Timer>(*reinterpret_cast<Node*>(node), callback, user).release());
              return LAGOMETER_OK;
            });
          },
      .arm =
          [](lagometer_timer* timer, int64_t at_ns) noexcept {
            return guarded([&] {
              reinterpret_cast<Timer*>(timer)->arm(at_ns);
              return LAGOMETER_OK;
            });
          },
      .destroy = [](lagometer_timer* timer) noexcept { delete reinterpret_cast<Timer*>(timer); }};
  return kTable;
}

}  // namespace lagometer::ros2
