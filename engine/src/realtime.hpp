// SPDX-License-Identifier: Apache-2.0
// Priority, affinity and memory locking. They are requested before an adapter is loaded, so that its threads inherit
// them, and read back from every thread afterwards, so that results show what was really in force.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan.hpp"

namespace lagometer::engine {

/// The plan's scheduling would starve the machine.
class SchedulingRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Applies the plan to the calling (main) thread; returns warnings for what the machine refuses.
std::vector<std::string> apply_scheduling(const Plan& plan);

/// Pins the calling thread; empty: leaves it as it is. Returns false if the machine refused.
bool pin_thread(const std::vector<int>& cpus) noexcept;

struct ThreadFacts {
  int id = 0;
  std::string name;
  std::string policy;
  int priority = 0;
  std::vector<int> cpus;
  long timer_slack_ns = -1;  ///< -1: can't be read
};

/// What the kernel has accounted to a thread: time on a CPU, and time it was ready to run without a CPU.
struct RunTime {
  int64_t run_ns = 0;
  int64_t wait_ns = 0;
};

/// By thread id, for all threads of this process. Empty if the kernel does not account this.
std::map<int, RunTime> read_run_times();

/// Every thread of this process, as the kernel reports it.
std::vector<ThreadFacts> read_threads();

}  // namespace lagometer::engine
