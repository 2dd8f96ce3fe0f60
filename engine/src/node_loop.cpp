// SPDX-License-Identifier: Apache-2.0
// How a thread comes to a node's work: it waits, it polls, or it only keeps the node's timers.
#include <pthread.h>

#include <algorithm>

#include "adapter_host.hpp"
#include "clock.hpp"
#include "guard.hpp"
#include "node.hpp"
#include "realtime.hpp"

namespace lagometer::engine {

namespace {

constexpr int64_t kDiscoveryPoll_ns = 1'000'000;

}  // namespace

void Node::start() {
  const bool takes_itself = plan_.dispatch != Dispatch::listener && !inputs.empty();
  if (takes_itself || (scheduled_ && timers_ == nullptr)) thread_ = std::jthread([this] { thread_main(); });
}

bool Node::wants_timer() const noexcept { return scheduled_ && plan_.dispatch == Dispatch::listener; }

void Node::keep_time_by(const lagometer_timers_table& table, lagometer_timer* timer) noexcept {
  timers_ = &table;
  timer_ = timer;
}

void Node::begin() noexcept {
  if (timers_ == nullptr) return wake();
  if (shared_) lock_.lock();
  begin_schedules(stage_.start_ns.load(std::memory_order_acquire));
  const int64_t due_ns = next_due_ns();
  if (shared_) lock_.unlock();
  arm(due_ns);
}

void Node::arm(int64_t at_ns) noexcept {
  const Lent lent;
  if (timers_->arm(timer_, at_ns) < 0) failure_.raise("arming a timer");
}

void Node::on_timer() noexcept {
  if (stage_.stopped.load(std::memory_order_relaxed)) return;
  const Measuring measuring(true);
  arm(fire_and_look_ahead());
}

int64_t Node::fire_and_look_ahead() noexcept {
  if (shared_) lock_.lock();
  fire_due(now_ns());
  if (shared_) drain_deferred();
  const int64_t due_ns = next_due_ns();
  if (shared_) lock_.unlock();
  return due_ns;
}

void Node::wake() noexcept {
  parker_.wake();
  if (waitset_ != nullptr) waitset_table_->waitset_trigger(waitset_);
}

void Node::join() {
  if (thread_.joinable()) thread_.join();
}

void Node::thread_main() {
  const std::string name = "node:" + plan_.name;
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  pin_thread(plan_.cpus);
  const InCall in_call;
  if (inputs.empty() || plan_.dispatch == Dispatch::listener) return run_timers_only();
  if (plan_.dispatch == Dispatch::waitset) return run_waiting();
  run_polling();
}

void Node::run_waiting() noexcept {
  bool begun = false;
  while (!stage_.stopped.load(std::memory_order_acquire)) {
    const int64_t start_ns = stage_.start_ns.load(std::memory_order_acquire);
    if (start_ns != 0 && !begun) {
      begin_schedules(start_ns);
      begun = true;
    }
    const lagometer_status status = wait_until(begun ? next_due_ns() : kNever_ns);
    if (status < 0) return failure_.raise("waiting");
    const Measuring measuring(stage_.running());
    Arrival arrival;
    arrival.woken_ns = now_ns();
    if (status == LAGOMETER_OK) drain_ready(arrival);
    if (begun && scheduled_) fire_due(now_ns());
  }
}

lagometer_status Node::wait_until(int64_t until_ns) noexcept {
  if (ready_.empty()) return waitset_table_->waitset_wait(waitset_, until_ns);
  ready_count_ = 0;
  const auto max = static_cast<uint32_t>(ready_.size());
  return waitset_table_->waitset_wait_ready(waitset_, until_ns, ready_.data(), max, &ready_count_);
}

// A reader whose message comes meanwhile ends the next wait, which is when its thread is woken for it.
void Node::drain_ready(const Arrival& arrival) noexcept {
  if (ready_.empty()) {
    for (Input& input : inputs) drain(input, arrival);
    return;
  }
  for (uint32_t index = 0; index < ready_count_; ++index) {
    if (ready_[index] < inputs.size()) drain(inputs[ready_[index]], arrival);
  }
}

void Node::run_polling() noexcept {
  const Arrival arrival;
  while (stage_.start_ns.load(std::memory_order_acquire) == 0) {
    if (stage_.stopped.load(std::memory_order_acquire)) return;
    for (Input& input : inputs) drain(input, arrival);
    parker_.wait_until(now_ns() + kDiscoveryPoll_ns);
  }
  begin_schedules(stage_.start_ns.load(std::memory_order_acquire));
  const Measuring measuring(true);
  while (!stage_.stopped.load(std::memory_order_relaxed)) {
    for (Input& input : inputs) drain(input, arrival);
    if (scheduled_) fire_due(now_ns());
  }
}

void Node::run_timers_only() noexcept {
  bool begun = false;
  while (!stage_.stopped.load(std::memory_order_acquire)) {
    const int64_t start_ns = stage_.start_ns.load(std::memory_order_acquire);
    if (start_ns != 0 && !begun) {
      if (shared_) lock_.lock();
      begin_schedules(start_ns);
      if (shared_) lock_.unlock();
      begun = true;
    }
    // A closed loop's deadline moves with every reply, on another thread: it is looked up again when this one wakes.
    if (shared_) lock_.lock();
    const int64_t due_ns = begun ? next_due_ns() : kNever_ns;
    if (shared_) lock_.unlock();
    parker_.wait_until(due_ns);
    if (!begun || stage_.stopped.load(std::memory_order_relaxed)) continue;
    const Measuring measuring(true);
    fire_and_look_ahead();
  }
}

}  // namespace lagometer::engine
