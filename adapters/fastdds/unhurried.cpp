// SPDX-License-Identifier: Apache-2.0
#include "unhurried.hpp"

#include <sched.h>
#include <sys/types.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace lagometer::fastdds {
namespace {

bool set_policy(pid_t thread, int policy) {
  const sched_param none{};
  return sched_setscheduler(thread, policy, &none) == 0;
}

// Returns whether there were any SCHED_BATCH threads.
bool make_all_ordinary() {
  bool any = false;
  std::error_code failed;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
    const std::string name = task.path().filename().string();
    pid_t thread = 0;
    std::from_chars(name.data(), name.data() + name.size(), thread);
    if (thread != 0 && sched_getscheduler(thread) == SCHED_BATCH) any |= set_policy(thread, SCHED_OTHER);
  }
  return any;
}

}  // namespace

Unhurried::Unhurried() : changed_(sched_getscheduler(0) == SCHED_OTHER && set_policy(0, SCHED_BATCH)) {}

// A thread that is still to be reset may start another one, which the same pass misses.
Unhurried::~Unhurried() {
  if (!changed_) return;
  set_policy(0, SCHED_OTHER);
  while (make_all_ordinary()) {
  }
}

}  // namespace lagometer::fastdds
