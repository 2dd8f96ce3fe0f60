// SPDX-License-Identifier: Apache-2.0
// One thread of the worker and the nodes it serves: it waits, polls, or only fires their timers.
#pragma once

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "lagometer/adapter.h"
#include "node.hpp"
#include "stage.hpp"

namespace lagometer::engine {

/// The dispatch thread of one node, or of all nodes of the process; it runs their callbacks one after another. Nodes
/// that share a loop have the same dispatch and the same CPUs (the plan ensures that).
class Loop {
 public:
  Loop(std::vector<Node*> nodes, Stage& stage, FailureFlag& failure);
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// What it waits on: a waitset to which all readers of its nodes are attached, node by node. Call before start().
  void wait_on(lagometer_waitset* waitset, const lagometer_adapter_table& table);
  /// Starts the thread, if its nodes' dispatch and rules need one.
  void start();
  /// Wakes the thread so that it sees the stage; join() then returns soon.
  void wake() noexcept;
  void join();

 private:
  /// A reader, and the node whose callback takes from it.
  struct Place {
    Node* node;
    Input* input;
  };

  void thread_main();
  void run_waiting() noexcept;
  /// Waits, and notes which readers have data if the adapter reports it.
  lagometer_status wait_until(int64_t until_ns) noexcept;
  void drain_ready(const Arrival& arrival) noexcept;
  void run_polling() noexcept;
  void run_timers_only() noexcept;
  void drain(const Place& place, const Arrival& arrival) const noexcept;
  void begin_schedules() const noexcept;
  [[nodiscard]] int64_t next_due_ns() const noexcept;
  void fire_due() const noexcept;

  std::string name_;
  std::vector<int> cpus_;
  Dispatch dispatch_;
  Stage& stage_;
  FailureFlag& failure_;
  std::vector<Place> places_;
  std::vector<Node*> timed_;  // nodes with timed rules, which this thread fires
  uint32_t taken_max_;        // messages that a callback takes before the others get their turn
  lagometer_waitset* waitset_ = nullptr;
  const lagometer_adapter_table* waitset_table_ = nullptr;
  std::vector<uint32_t> ready_;  // room for the ready readers; empty: waits don't report them
  uint32_t ready_count_ = 0;
  Parker parker_;
  std::jthread thread_;
};

}  // namespace lagometer::engine
