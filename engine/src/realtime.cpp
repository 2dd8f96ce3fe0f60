// SPDX-License-Identifier: Apache-2.0
#include "realtime.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "timer_slack.hpp"

namespace lagometer::engine {

namespace {

std::string reason() { return std::strerror(errno); }

std::vector<int> list_of(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

size_t usable_cpus(const Plan& plan) {
  if (!plan.scheduling.cpus.empty()) return plan.scheduling.cpus.size();
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<size_t>(CPU_COUNT(&set)) : 1;
}

// Spinning FIFO threads on every core leave no core for the rest, and hit the kernel's real-time throttling.
void refuse_starvation(const Plan& plan) {
  if (!plan.scheduling.fifo) return;
  size_t spinning = 0;
  for (const NodePlan& node : plan.nodes) spinning += node.dispatch == Dispatch::poll && !node.readers.empty() ? 1 : 0;
  const size_t cpus = usable_cpus(plan);
  const auto online = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  if (spinning > 0 && (spinning >= online || spinning > cpus)) {
    throw SchedulingRefused(std::to_string(spinning) + " busy-polling threads under SCHED_FIFO on " +
                            std::to_string(cpus) + " of " + std::to_string(online) +
                            " CPUs would starve the machine; use the waitset, fewer nodes, or scheduling: other");
  }
}

// mlockall succeeds without the right to lock, and makes later allocations fail instead. So this tries an allocation.
void lock_memory(std::vector<std::string>& warnings) {
  if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0) {
    warnings.push_back("memory not locked: " + reason());
    return;
  }
  constexpr size_t kTrialBytes = size_t{256} << 20;
  void* memory = mmap(nullptr, kTrialBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    munmap(memory, kTrialBytes);
    return;
  }
  munlockall();
  warnings.emplace_back("memory not locked: the limit on locked memory is too low (ulimit -l)");
}

}  // namespace

bool pin_thread(const std::vector<int>& cpus) noexcept {
  if (cpus.empty()) return true;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::vector<std::string> apply_scheduling(const Plan& plan) {
  refuse_starvation(plan);
  std::vector<std::string> warnings;
  if (!pin_thread(plan.scheduling.cpus)) warnings.push_back("affinity not set: " + reason());
  if (std::string late = sleep_on_time(); !late.empty()) warnings.push_back(std::move(late));
  if (plan.scheduling.lock_memory) lock_memory(warnings);
  if (plan.scheduling.fifo) {
    const sched_param parameter{.sched_priority = plan.scheduling.priority};
    if (sched_setscheduler(0, SCHED_FIFO, &parameter) != 0) {
      warnings.push_back("SCHED_FIFO priority " + std::to_string(plan.scheduling.priority) + " not set: " + reason() +
                         " (needs CAP_SYS_NICE or a real-time limit: ulimit -r)");
    }
  }
  return warnings;
}

std::map<int, RunTime> read_run_times() {
  std::map<int, RunTime> times;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    RunTime time;
    std::ifstream account(entry.path() / "schedstat");
    if (account >> time.run_ns >> time.wait_ns) times[std::stoi(entry.path().filename().string())] = time;
  }
  return times;
}

std::vector<ThreadFacts> read_threads() {
  std::vector<ThreadFacts> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    ThreadFacts facts;
    const std::string text = entry.path().filename();
    std::from_chars(text.data(), text.data() + text.size(), facts.id);
    std::getline(std::ifstream(entry.path() / "comm"), facts.name);
    const int policy = sched_getscheduler(facts.id);
    facts.policy = policy == SCHED_FIFO    ? "fifo"
                   : policy == SCHED_RR    ? "rr"
                   : policy == SCHED_OTHER ? "other"
                                           : "unknown";
    sched_param parameter{};
    if (sched_getparam(facts.id, &parameter) == 0) facts.priority = parameter.sched_priority;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(facts.id, sizeof set, &set) == 0) facts.cpus = list_of(set);
    std::ifstream slack("/proc/" + text + "/timerslack_ns");
    if (!(slack >> facts.timer_slack_ns)) facts.timer_slack_ns = -1;
    threads.push_back(std::move(facts));
  }
  return threads;
}

}  // namespace lagometer::engine
