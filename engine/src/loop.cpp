// SPDX-License-Identifier: Apache-2.0
#include "loop.hpp"

#include <pthread.h>

#include <algorithm>

#include "adapter_host.hpp"
#include "clock.hpp"
#include "guard.hpp"
#include "realtime.hpp"

namespace lagometer::engine {

namespace {

constexpr int64_t kDiscoveryPoll_ns = 1'000'000;

}  // namespace

Loop::Loop(std::vector<Node*> nodes, Stage& stage, FailureFlag& failure)
    : name_(nodes.size() == 1 ? "node:" + nodes.front()->plan().name : "nodes"),
      cpus_(nodes.front()->plan().cpus),
      dispatch_(nodes.front()->plan().dispatch),
      stage_(stage),
      failure_(failure),
      // As in an executor: a node with much to do must not keep the others from their turn.
      taken_max_(nodes.size() == 1 ? Node::kAll : 1) {
  for (Node* const node : nodes) {
    for (Input& input : node->inputs) places_.push_back({.node = node, .input = &input});
    if (node->keeps_time()) timed_.push_back(node);
  }
}

void Loop::wait_on(lagometer_waitset* waitset, const lagometer_adapter_table& table) {
  waitset_ = waitset;
  waitset_table_ = &table;
  // With one reader there is nothing to report.
  const bool named = places_.size() > 1 && table.waitset_wait_ready != nullptr;
  ready_.resize(named ? places_.size() : 0);
}

void Loop::start() {
  const bool takes_itself = dispatch_ != Dispatch::listener && !places_.empty();
  if (takes_itself || !timed_.empty()) thread_ = std::jthread([this] { thread_main(); });
}

void Loop::wake() noexcept {
  parker_.wake();
  if (waitset_ != nullptr) waitset_table_->waitset_trigger(waitset_);
}

void Loop::join() {
  if (thread_.joinable()) thread_.join();
}

void Loop::thread_main() {
  pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
  pin_thread(cpus_);
  const InCall in_call;
  if (places_.empty() || dispatch_ == Dispatch::listener) return run_timers_only();
  if (dispatch_ == Dispatch::waitset) return run_waiting();
  run_polling();
}

void Loop::run_waiting() noexcept {
  bool begun = false;
  while (!stage_.stopped.load(std::memory_order_acquire)) {
    if (!begun && stage_.start_ns.load(std::memory_order_acquire) != 0) {
      begin_schedules();
      begun = true;
    }
    const lagometer_status status = wait_until(begun ? next_due_ns() : kNever_ns);
    if (status < 0) return failure_.raise("waiting");
    const Measuring measuring(stage_.running());
    Arrival arrival;
    arrival.woken_ns = now_ns();
    if (status == LAGOMETER_OK) drain_ready(arrival);
    if (begun) fire_due();
  }
}

lagometer_status Loop::wait_until(int64_t until_ns) noexcept {
  if (ready_.empty()) return waitset_table_->waitset_wait(waitset_, until_ns);
  ready_count_ = 0;
  const auto max = static_cast<uint32_t>(ready_.size());
  return waitset_table_->waitset_wait_ready(waitset_, until_ns, ready_.data(), max, &ready_count_);
}

// A reader that gets a message meanwhile, or has more than its turn takes, ends the next wait.
void Loop::drain_ready(const Arrival& arrival) noexcept {
  if (ready_.empty()) {
    for (const Place& place : places_) drain(place, arrival);
    return;
  }
  for (uint32_t index = 0; index < ready_count_; ++index) {
    if (ready_[index] < places_.size()) drain(places_[ready_[index]], arrival);
  }
}

void Loop::drain(const Place& place, const Arrival& arrival) const noexcept {
  place.node->drain(*place.input, arrival, taken_max_);
}

void Loop::run_polling() noexcept {
  const Arrival arrival;
  while (stage_.start_ns.load(std::memory_order_acquire) == 0) {
    if (stage_.stopped.load(std::memory_order_acquire)) return;
    for (const Place& place : places_) drain(place, arrival);
    parker_.wait_until(now_ns() + kDiscoveryPoll_ns);
  }
  begin_schedules();
  const Measuring measuring(true);
  while (!stage_.stopped.load(std::memory_order_relaxed)) {
    for (const Place& place : places_) drain(place, arrival);
    fire_due();
  }
}

void Loop::run_timers_only() noexcept {
  bool begun = false;
  while (!stage_.stopped.load(std::memory_order_acquire)) {
    if (!begun && stage_.start_ns.load(std::memory_order_acquire) != 0) {
      begin_schedules();
      begun = true;
    }
    // A closed loop's deadline moves with every reply, on another thread: this thread reads it again when it wakes.
    parker_.wait_until(begun ? next_due_ns() : kNever_ns);
    if (!begun || stage_.stopped.load(std::memory_order_relaxed)) continue;
    const Measuring measuring(true);
    fire_due();
  }
}

void Loop::begin_schedules() const noexcept {
  const int64_t start_ns = stage_.start_ns.load(std::memory_order_acquire);
  for (Node* const node : timed_) node->begin_schedules(start_ns);
}

int64_t Loop::next_due_ns() const noexcept {
  int64_t next_ns = kNever_ns;
  for (Node* const node : timed_) next_ns = std::min(next_ns, node->next_due_ns());
  return next_ns;
}

// The time is read again for each node: the previous one may have been busy.
void Loop::fire_due() const noexcept {
  for (Node* const node : timed_) node->fire_due();
}

}  // namespace lagometer::engine
