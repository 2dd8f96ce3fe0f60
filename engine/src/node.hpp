// SPDX-License-Identifier: Apache-2.0
// One node: takes messages, applies its rules, publishes. What happens when is decided here; how a thread gets here
// (waitset, poll, listener, timer) is the node's loop.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "endpoint.hpp"
#include "lagometer/timers.h"
#include "schedule.hpp"
#include "stage.hpp"

namespace lagometer::engine {

/// How a message came to this thread; 0 and kCpuUnknown where that could not be observed.
struct Arrival {
  int64_t signalled_ns = 0;
  int64_t woken_ns = 0;
  uint16_t cpu_signalled = kCpuUnknown;
  Stamp taken = {};
};

/// What became of the schedule by which a writer sends.
struct Punctuality {
  uint64_t due = 0;      ///< messages that the schedule had in the measure phase
  uint64_t skipped = 0;  ///< messages dropped because they were late
  int64_t shift_ns = 0;  ///< by how much the schedule was behind the original in the end
};

class Node {
 public:
  Node(const NodePlan& plan, Stage& stage, FailureFlag& failure) : plan_(plan), stage_(stage), failure_(failure) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Endpoints in the order of the plan; then prepare() once.
  std::deque<Input> inputs;
  std::deque<Output> outputs;
  void prepare(lagometer_waitset* waitset, const lagometer_adapter_table* waitset_table);
  /// Is called back, and has rules that fire by time, which a timer of the middleware's may fire.
  [[nodiscard]] bool wants_timer() const noexcept;
  /// The schedule is the timer's to fire, by on_timer(), instead of an own thread's. Before start().
  void keep_time_by(const lagometer_timers_table& table, lagometer_timer* timer) noexcept;

  /// Starts the node's own thread, if its dispatch and rules need one.
  void start();
  /// The time of the start is known: schedules begin.
  void begin() noexcept;
  /// Wakes the thread so that it sees the stage; join() then returns soon.
  void wake() noexcept;
  void join();

  /// The listener's entry for one input. [thread: the middleware's]
  void on_data(Input& input) noexcept;
  /// The timer's entry. [thread: the middleware's]
  void on_timer() noexcept;

  [[nodiscard]] const NodePlan& plan() const noexcept { return plan_; }
  /// A closed loop stopped before its time, since there was no room for more records.
  [[nodiscard]] bool ended_early() const noexcept { return ended_early_; }
  [[nodiscard]] uint64_t resent(uint32_t writer) const noexcept { return resent_[writer]; }
  /// Nothing for a writer that not only timers send by. `begin_ns`, `end_ns`: the measure phase, from the start on.
  [[nodiscard]] std::optional<Punctuality> punctuality(uint32_t writer, int64_t begin_ns, int64_t end_ns) const;

 private:
  struct Rule {
    RulePlan plan;
    std::vector<Cause> causes;  // parallel to plan.readers: the newest message of each
    std::vector<bool> fresh;    // parallel to plan.readers
    std::vector<Cause> used;    // parallel to plan.uses: the newest message of each
    std::vector<bool> heard;    // parallel to plan.uses: whether there is one
    std::vector<Cause> known;   // the causes of the message that is sent; as many as readers fit without allocating
    Schedule schedule;
    Work work;
    int64_t intended_ns = 0;  // timer: of the next message, by the original schedule
    int64_t shift_ns = 0;     // timer: by how much the schedule has moved
    int64_t next_due_ns = 0;  // when to send next
    uint64_t skipped = 0;
    uint64_t cycles = 0;
    bool awaiting = false;
  };

  void thread_main();
  void run_waiting() noexcept;
  /// Waits, and notes which readers have data where the adapter can say so.
  lagometer_status wait_until(int64_t until_ns) noexcept;
  void drain_ready(const Arrival& arrival) noexcept;
  void run_polling() noexcept;
  void run_timers_only() noexcept;
  /// What is due, with what came meanwhile; when the next is due.
  int64_t fire_and_look_ahead() noexcept;
  void arm(int64_t at_ns) noexcept;
  void begin_schedules(int64_t start_ns) noexcept;
  [[nodiscard]] int64_t next_due_ns() const noexcept;
  void fire_due(int64_t time_ns) noexcept;
  void fire_timer(Rule& rule, int64_t time_ns, int64_t begun_ns) noexcept;
  void send_scheduled(Rule& rule, int64_t begun_ns) noexcept;
  void skip_late(Rule& rule, int64_t time_ns) noexcept;
  void advance(Rule& rule) noexcept;
  void fire_closed_loop(Rule& rule, bool timed_out, int64_t begun_ns) noexcept;
  void drain(Input& input, Arrival arrival) noexcept;
  /// Under the lock: what was announced while this thread was inside the node already.
  void drain_deferred() noexcept;
  void handle(Input& input, const lagometer_sample& sample, const Envelope& envelope, const Arrival& arrival) noexcept;
  /// Returns when the node's work on the message was done; 0: it triggered none.
  int64_t apply(Rule& rule, size_t position, const Cause& cause, const lagometer_sample& sample,
                int64_t taken_ns) noexcept;
  /// A client's "are you there" is answered, which is how it hears that replies come.
  void answer_probe(uint32_t stream, const lagometer_sample& request) noexcept;
  void publish_all(const Rule& rule, const Output::Occasion& occasion) noexcept;
  /// These causes, and after them the newest message of each reader that the rule uses.
  static std::span<const Cause> with_used(Rule& rule, std::span<const Cause> causes) noexcept;
  [[nodiscard]] bool loop_ended(const Rule& rule) noexcept;

  NodePlan plan_;
  Stage& stage_;
  FailureFlag& failure_;
  lagometer_waitset* waitset_ = nullptr;
  const lagometer_adapter_table* waitset_table_ = nullptr;
  std::vector<uint32_t> ready_;  // room for the inputs that a wait names; empty: it names none
  uint32_t ready_count_ = 0;
  lagometer_timer* timer_ = nullptr;
  const lagometer_timers_table* timers_ = nullptr;
  std::vector<Rule> rules_;
  std::vector<uint64_t> resent_;
  std::vector<std::optional<Arrival>> deferred_;  // by input
  bool ended_early_ = false;
  bool scheduled_ = false;  // has rules that fire by time
  bool shared_ = false;     // more than one thread comes here: lock
  SpinLock lock_;
  Parker parker_;
  std::jthread thread_;
};

}  // namespace lagometer::engine
