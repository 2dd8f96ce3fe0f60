// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "adapter_host.hpp"
#include "clock.hpp"
#include "guard.hpp"

namespace lagometer::engine {

namespace {

constexpr int64_t kEnablingPoll_ns = 200'000;
constexpr int64_t kEnablingMax_ns = 1'000'000'000;

// Busy for a wall-clock time: a node that is preempted while it works is late, as it would be in a robot.
void busy_for(int64_t work_ns) noexcept {
  if (work_ns == 0) return;
  const int64_t end_ns = now_ns() + work_ns;
  while (now_ns() < end_ns) {
  }
}

/// Holds a node's lock if other threads also come to it.
class LockedIf {
 public:
  LockedIf(SpinLock& lock, bool shared) noexcept : lock_(shared ? &lock : nullptr) {
    if (lock_ != nullptr) lock_->lock();
  }
  LockedIf(const LockedIf&) = delete;
  LockedIf& operator=(const LockedIf&) = delete;
  ~LockedIf() {
    if (lock_ != nullptr) lock_->unlock();
  }

 private:
  SpinLock* lock_;
};

std::optional<size_t> place_in(const std::vector<uint32_t>& readers, uint32_t input) noexcept {
  const auto found = std::find(readers.begin(), readers.end(), input);
  if (found == readers.end()) return std::nullopt;
  return static_cast<size_t>(found - readers.begin());
}

}  // namespace

void Node::prepare() {
  for (const RulePlan& plan : plan_.rules) {
    Rule rule{.plan = plan,
              .causes = {},
              .fresh = {},
              .used = {},
              .heard = {},
              .known = {},
              .schedule = Schedule(plan.schedule, plan.period_ns),
              .work = Work(plan.work, plan.work_ns)};
    rule.causes.resize(plan.readers.size());
    rule.fresh.resize(plan.readers.size(), false);
    rule.used.resize(plan.uses.size());
    rule.heard.resize(plan.uses.size(), false);
    rule.known.reserve(plan.readers.size() + plan.uses.size());
    scheduled_ = scheduled_ || plan.trigger == Trigger::timer || plan.trigger == Trigger::closed_loop;
    rules_.push_back(std::move(rule));
  }
  resent_.resize(plan_.writers.size(), 0);
  deferred_.resize(inputs.size());
  shared_ = plan_.dispatch == Dispatch::listener && (scheduled_ || inputs.size() > 1);
}

void Node::on_data(Input& input) noexcept {
  Arrival arrival;
  arrival.signalled_ns = now_ns();
  arrival.cpu_signalled = current_cpu(input.cpu_source());
  if (stage_.stopped.load(std::memory_order_relaxed)) return;
  if (!shared_) return drain(input, arrival, kAll);
  if (lock_.mine()) {
    deferred_[input.index()] = arrival;  // taken when the publish that caused it has returned
    return;
  }
  lock_.lock();
  drain(input, arrival, kAll);
  drain_deferred();
  lock_.unlock();
}

void Node::drain_deferred() noexcept {
  for (bool again = true; again && !stage_.stopped.load(std::memory_order_relaxed);) {
    again = false;
    for (Input& input : inputs) {
      if (const std::optional<Arrival> arrival = std::exchange(deferred_[input.index()], std::nullopt)) {
        drain(input, *arrival, kAll);
        again = true;
      }
    }
  }
}

void Node::drain(Input& input, Arrival arrival, uint32_t max) noexcept {
  const Measuring measuring(stage_.running());
  for (;;) {
    const std::span<lagometer_sample> samples = input.take(max);
    if (samples.empty()) return;
    arrival.taken = stamp_now(input.cpu_source());
    stamping_path();
    for (const lagometer_sample& sample : samples) {
      const std::optional<Envelope> envelope = input.open(sample);
      if (!envelope) continue;
      if (envelope->kind == static_cast<uint8_t>(MessageKind::probe)) {
        input.note_probe(envelope->stream, envelope->sequence, arrival.taken.time_ns);
        answer_probe(envelope->stream, sample);
        continue;
      }
      handle(input, sample, *envelope, arrival);
    }
    const bool more = samples.size() == Input::kBatch && max == kAll;
    input.release();
    if (!more) return;
  }
}

void Node::handle(Input& input, const lagometer_sample& sample, const Envelope& envelope,
                  const Arrival& arrival) noexcept {
  int64_t handled_ns = 0;
  uint64_t bytes = 0;
  const bool whole = input.read_payload(sample, envelope, bytes);
  if (whole) {
    const Cause cause{.stream = envelope.stream, .sequence = envelope.sequence};
    for (Rule& rule : rules_) {
      if (const std::optional<size_t> used = place_in(rule.plan.uses, input.index())) {
        rule.used[*used] = cause;
        rule.heard[*used] = true;
      }
      const std::optional<size_t> position = place_in(rule.plan.readers, input.index());
      if (!position) continue;
      const int64_t done_ns = apply(rule, *position, cause, sample, arrival.taken.time_ns);
      if (done_ns != 0) handled_ns = done_ns;
    }
  }
  if (handled_ns == 0) handled_ns = now_ns();
  // Last, after the messages caused by this one were sent.
  ReceivedRecord* const record = input.claim_record();
  if (record == nullptr) return;
  const bool told = sample.signalled_ns != 0;  // the adapter knows better than the callback's begin
  record->sequence = envelope.sequence;
  record->signalled_ns = told ? sample.signalled_ns : arrival.signalled_ns;
  record->cpu_signalled = told ? static_cast<uint16_t>(sample.signalled_cpu) : arrival.cpu_signalled;
  record->woken_ns = arrival.woken_ns;
  record->taken_ns = arrival.taken.time_ns;
  record->cpu_taken = arrival.taken.cpu;
  record->handled_ns = handled_ns;
  record->stream = envelope.stream;
  record->payload_bytes = static_cast<uint32_t>(bytes);
  record->flags = whole ? 0 : kReceivedCorrupted;
  record->middleware_sequence = sample.middleware_sequence;
  input.keep_record();
  input.record_stamps(sample, envelope, arrival.taken.time_ns);
}

void Node::answer_probe(uint32_t stream, const lagometer_sample& request) noexcept {
  // Readers are enabled before writers, so a listener may hear a client before the node can answer.
  for (int64_t waited_ns = 0; !stage_.enabled.load(std::memory_order_acquire); waited_ns += kEnablingPoll_ns) {
    if (waited_ns >= kEnablingMax_ns) return;  // the middleware enables on this very thread
    const timespec pause = to_timespec(kEnablingPoll_ns);
    nanosleep(&pause, nullptr);
  }
  for (Output& output : outputs) {
    if (output.answers(stream)) output.send_probe(&request);
  }
}

int64_t Node::apply(Rule& rule, size_t position, const Cause& cause, const lagometer_sample& sample,
                    int64_t taken_ns) noexcept {
  rule.causes[position] = cause;
  rule.fresh[position] = true;
  if (rule.plan.trigger == Trigger::timer) return 0;  // the newest message is remembered; the timer fires
  if (rule.plan.trigger == Trigger::all) {
    if (std::find(rule.fresh.begin(), rule.fresh.end(), false) != rule.fresh.end()) return 0;
    std::fill(rule.fresh.begin(), rule.fresh.end(), false);
  }
  if (rule.plan.trigger == Trigger::closed_loop) {
    if (!rule.awaiting || cause.sequence != outputs[rule.plan.writers.front()].last_sequence()) return 0;
    rule.awaiting = false;
  }
  busy_for(rule.work.next_ns());
  const int64_t handled_ns = now_ns();
  if (rule.plan.trigger == Trigger::closed_loop) {
    fire_closed_loop(rule, false, taken_ns);
  } else if (rule.plan.trigger == Trigger::all) {
    publish_all(rule, {.begun_ns = taken_ns, .causes = with_used(rule, rule.causes)});
  } else {
    publish_all(rule, {.begun_ns = taken_ns,
                       .causes = with_used(rule, {&cause, 1}),
                       .echo = rule.plan.echo ? std::optional(cause.sequence) : std::nullopt,
                       .request = &sample});
  }
  return handled_ns;
}

std::span<const Cause> Node::with_used(Rule& rule, std::span<const Cause> causes) noexcept {
  if (rule.used.empty()) return causes;
  rule.known.assign(causes.begin(), causes.end());
  for (size_t place = 0; place < rule.used.size(); ++place) {
    if (rule.heard[place]) rule.known.push_back(rule.used[place]);
  }
  return rule.known;
}

void Node::publish_all(const Rule& rule, const Output::Occasion& occasion) noexcept {
  // A peer that has already started may be heard while this worker's main thread still sends probes on the same
  // writers.
  std::unique_lock<SpinLock> against_probes;
  if (stage_.start_ns.load(std::memory_order_acquire) == 0 && !stage_.probing.mine()) [[unlikely]] {
    against_probes = std::unique_lock(stage_.probing);
  }
  for (const uint32_t writer : rule.plan.writers) {
    Output& output = outputs[writer];
    // Of a server's replies, only the one to the client that asked.
    if (output.plan().answers && !output.answers(occasion.causes.front().stream)) continue;
    output.publish(occasion);
  }
}

bool Node::loop_ended(const Rule& rule) noexcept {
  if (rule.plan.messages_max != 0 && rule.cycles >= rule.plan.messages_max) return true;
  const auto full = [this](uint32_t writer) { return outputs[writer].recorder_room() == 0; };
  ended_early_ = ended_early_ || std::any_of(rule.plan.writers.begin(), rule.plan.writers.end(), full);
  return ended_early_;
}

void Node::fire_closed_loop(Rule& rule, bool timed_out, int64_t begun_ns) noexcept {
  const int64_t time_ns = now_ns();
  if (time_ns >= stage_.source_stop_ns.load(std::memory_order_relaxed) || loop_ended(rule)) {
    rule.next_due_ns = kNever_ns;
    return;
  }
  for (const uint32_t writer : rule.plan.writers) {
    if (timed_out) ++resent_[writer];
    rule.awaiting = true;  // before the message leaves: the reply may come on another thread
    rule.next_due_ns = time_ns + rule.plan.timeout_ns;
    ++rule.cycles;
    outputs[writer].publish({.begun_ns = begun_ns});
  }
}

// A message is late if it is overdue by a whole spacing: less is the machine's wake-up latency, and not a matter of
// policy.
void Node::fire_timer(Rule& rule, int64_t time_ns, int64_t begun_ns) noexcept {
  const int64_t overdue_ns = time_ns - rule.next_due_ns;
  if (overdue_ns >= rule.schedule.spacing_ns()) {
    if (rule.plan.schedule.late == LatePolicy::skip) return skip_late(rule, time_ns);
    if (rule.plan.schedule.late == LatePolicy::shift) rule.shift_ns += overdue_ns;
  }
  send_scheduled(rule, begun_ns);
}

void Node::send_scheduled(Rule& rule, int64_t begun_ns) noexcept {
  busy_for(rule.work.next_ns());
  // The newest message of each listed reader causes a timer's message; without such a message it is a root.
  rule.known.clear();
  for (size_t position = 0; position < rule.causes.size(); ++position) {
    if (rule.fresh[position]) rule.known.push_back(rule.causes[position]);
  }
  // The intended time stays that of the original schedule, even if that has moved: a sender can't hide its lateness.
  for (const uint32_t writer : rule.plan.writers)
    outputs[writer].publish({.intended_ns = rule.intended_ns, .begun_ns = begun_ns, .causes = rule.known});
  ++rule.cycles;
  advance(rule);
}

void Node::skip_late(Rule& rule, int64_t time_ns) noexcept {
  const int64_t stop_ns = stage_.source_stop_ns.load(std::memory_order_relaxed);
  uint64_t count = 0;
  for (; time_ns - rule.next_due_ns >= rule.schedule.spacing_ns() && rule.next_due_ns < stop_ns; ++count) advance(rule);
  rule.skipped += count;
  for (const uint32_t writer : rule.plan.writers) outputs[writer].skip(count);
}

void Node::advance(Rule& rule) noexcept {
  rule.intended_ns = stage_.start_ns.load(std::memory_order_relaxed) + rule.plan.offset_ns + rule.schedule.next_ns();
  rule.next_due_ns = rule.intended_ns + rule.shift_ns;
}

std::optional<Punctuality> Node::punctuality(uint32_t writer, int64_t begin_ns, int64_t end_ns) const {
  Punctuality found;
  for (const Rule& rule : rules_) {
    const RulePlan& plan = rule.plan;
    if (std::find(plan.writers.begin(), plan.writers.end(), writer) == plan.writers.end()) continue;
    if (plan.trigger != Trigger::timer) return std::nullopt;
    found.due += messages_due(plan.schedule, plan.period_ns, plan.offset_ns, begin_ns, end_ns);
    found.skipped += rule.skipped;
    found.shift_ns = std::max(found.shift_ns, rule.shift_ns);
  }
  return found;
}

bool Node::wants_timer() const noexcept { return scheduled_ && plan_.dispatch == Dispatch::listener; }

void Node::keep_time_by(const lagometer_timers_table& table, lagometer_timer* timer) noexcept {
  timers_ = &table;
  timer_ = timer;
}

void Node::begin_by_timer() noexcept {
  if (timers_ == nullptr) return;
  begin_schedules(stage_.start_ns.load(std::memory_order_acquire));
  arm(next_due_ns());
}

void Node::arm(int64_t at_ns) noexcept {
  const Lent lent;
  if (timers_->arm(timer_, at_ns) < 0) failure_.raise("arming a timer");
}

void Node::on_timer() noexcept {
  if (stage_.stopped.load(std::memory_order_relaxed)) return;
  const Measuring measuring(true);
  fire_due();
  arm(next_due_ns());
}

void Node::begin_schedules(int64_t start_ns) noexcept {
  const LockedIf locked(lock_, shared_);
  for (Rule& rule : rules_) {
    if (rule.plan.trigger == Trigger::timer)
      advance(rule);
    else
      rule.next_due_ns = rule.plan.trigger == Trigger::closed_loop ? start_ns : kNever_ns;
  }
}

int64_t Node::next_due_ns() noexcept {
  const LockedIf locked(lock_, shared_);
  int64_t next = kNever_ns;
  const int64_t stop_ns = stage_.source_stop_ns.load(std::memory_order_relaxed);
  for (const Rule& rule : rules_) {
    const bool ended = rule.plan.trigger == Trigger::timer && rule.next_due_ns >= stop_ns;
    if (!ended) next = std::min(next, rule.next_due_ns);
  }
  return next;
}

void Node::fire_due() noexcept {
  const LockedIf locked(lock_, shared_);
  fire_all(now_ns());
  if (shared_) drain_deferred();
}

void Node::fire_all(int64_t time_ns) noexcept {
  const int64_t stop_ns = stage_.source_stop_ns.load(std::memory_order_relaxed);
  int64_t begun_ns = time_ns;  // when the first due callback began; each other begins when the previous one ends
  for (Rule& rule : rules_) {
    // Open loop: sends everything that is overdue, each with its own intended time, unless the policy for late messages
    // says otherwise.
    while (rule.plan.trigger == Trigger::timer && rule.next_due_ns <= time_ns && rule.next_due_ns < stop_ns &&
           !stage_.stopped.load(std::memory_order_relaxed)) {
      fire_timer(rule, time_ns, begun_ns != 0 ? begun_ns : now_ns());
      begun_ns = 0;
    }
    if (rule.plan.trigger == Trigger::closed_loop && rule.next_due_ns <= time_ns)
      fire_closed_loop(rule, rule.awaiting, time_ns);
  }
}

}  // namespace lagometer::engine
