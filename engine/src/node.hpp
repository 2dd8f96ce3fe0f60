// SPDX-License-Identifier: Apache-2.0
// One node: takes messages, applies its rules, publishes. The node decides what happens when; a loop decides how a
// thread gets here (waitset, poll, listener, timer).
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "endpoint.hpp"
#include "lagometer/timers.h"
#include "schedule.hpp"
#include "stage.hpp"

namespace lagometer::engine {

/// How a message came to this thread; 0 and kCpuUnknown if that could not be observed.
struct Arrival {
  int64_t signalled_ns = 0;
  int64_t woken_ns = 0;
  uint16_t cpu_signalled = kCpuUnknown;
  Stamp taken = {};
};

/// How well a writer kept its schedule.
struct Punctuality {
  uint64_t due = 0;      ///< messages scheduled in the measure phase
  uint64_t skipped = 0;  ///< messages dropped because they were late
  int64_t shift_ns = 0;  ///< how far the schedule was behind the original at the end
};

class Node {
 public:
  static constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();

  Node(const NodePlan& plan, Stage& stage, FailureFlag& failure) : plan_(plan), stage_(stage), failure_(failure) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Endpoints in the order of the plan; then call prepare() once.
  std::deque<Input> inputs;
  std::deque<Output> outputs;
  void prepare();
  /// It is called back and has timed rules, which a timer of the middleware may fire.
  [[nodiscard]] bool wants_timer() const noexcept;
  /// The timer fires the schedule, through on_timer(), instead of a loop.
  void keep_time_by(const lagometer_timers_table& table, lagometer_timer* timer) noexcept;
  /// It has timed rules and no timer of the middleware: a loop must fire them.
  [[nodiscard]] bool keeps_time() const noexcept { return scheduled_ && timers_ == nullptr; }
  /// The time of the start is known: starts a schedule that the middleware's timer fires.
  void begin_by_timer() noexcept;

  /// Takes and handles `max` messages, or all that are available. [thread: the one that serves the node]
  void drain(Input& input, Arrival arrival, uint32_t max) noexcept;
  /// Starts the schedules. [thread: as above, also for the next two]
  void begin_schedules(int64_t start_ns) noexcept;
  /// When the next timed action is due; kNever_ns: never.
  [[nodiscard]] int64_t next_due_ns() noexcept;
  /// Sends what is due by now, and takes the messages that result from it.
  void fire_due() noexcept;

  /// The listener's entry point for one input. [thread: the middleware's]
  void on_data(Input& input) noexcept;
  /// The timer's entry point. [thread: the middleware's]
  void on_timer() noexcept;

  [[nodiscard]] const NodePlan& plan() const noexcept { return plan_; }
  /// A closed loop stopped early because there was no room for more records.
  [[nodiscard]] bool ended_early() const noexcept { return ended_early_; }
  [[nodiscard]] uint64_t resent(uint32_t writer) const noexcept { return resent_[writer]; }
  /// Nothing if a writer also sends for other reasons than timers. `begin_ns`, `end_ns`: the measure phase, relative to
  /// the start.
  [[nodiscard]] std::optional<Punctuality> punctuality(uint32_t writer, int64_t begin_ns, int64_t end_ns) const;

 private:
  struct Rule {
    RulePlan plan;
    std::vector<Cause> causes;  // parallel to plan.readers: the newest message of each
    std::vector<bool> fresh;    // parallel to plan.readers
    std::vector<Cause> used;    // parallel to plan.uses: the newest message of each
    std::vector<bool> heard;    // parallel to plan.uses: whether there is a message
    std::vector<Cause> known;   // the causes of the message being sent; sized for all readers without allocating
    Schedule schedule;
    Work work;
    int64_t intended_ns = 0;  // timer: when the next message is due by the original schedule
    int64_t shift_ns = 0;     // timer: how far the schedule has moved
    int64_t next_due_ns = 0;  // when to send next
    uint64_t skipped = 0;
    uint64_t cycles = 0;
    bool awaiting = false;
  };

  void arm(int64_t at_ns) noexcept;
  void fire_all(int64_t time_ns) noexcept;
  void fire_timer(Rule& rule, int64_t time_ns, int64_t begun_ns) noexcept;
  void send_scheduled(Rule& rule, int64_t begun_ns) noexcept;
  void skip_late(Rule& rule, int64_t time_ns) noexcept;
  void advance(Rule& rule) noexcept;
  void fire_closed_loop(Rule& rule, bool timed_out, int64_t begun_ns) noexcept;
  /// Under the lock: handles what was announced while this thread was already inside the node.
  void drain_deferred() noexcept;
  void handle(Input& input, const lagometer_sample& sample, const Envelope& envelope, const Arrival& arrival) noexcept;
  /// Returns when the node finished its work on the message; 0: it triggered no message.
  int64_t apply(Rule& rule, size_t position, const Cause& cause, const lagometer_sample& sample,
                int64_t taken_ns) noexcept;
  /// Answers a client's "are you there", so that the client hears that replies arrive.
  void answer_probe(uint32_t stream, const lagometer_sample& request) noexcept;
  void publish_all(const Rule& rule, const Output::Occasion& occasion) noexcept;
  /// These causes, followed by the newest message of each reader that the rule uses.
  static std::span<const Cause> with_used(Rule& rule, std::span<const Cause> causes) noexcept;
  [[nodiscard]] bool loop_ended(const Rule& rule) noexcept;

  NodePlan plan_;
  Stage& stage_;
  FailureFlag& failure_;
  lagometer_timer* timer_ = nullptr;
  const lagometer_timers_table* timers_ = nullptr;
  std::vector<Rule> rules_;
  std::vector<uint64_t> resent_;
  std::vector<std::optional<Arrival>> deferred_;  // by input
  bool ended_early_ = false;
  bool scheduled_ = false;  // has timed rules
  bool shared_ = false;     // more than one thread comes here: needs the lock
  SpinLock lock_;
};

}  // namespace lagometer::engine
