// SPDX-License-Identifier: Apache-2.0
#include "wake_up.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "clock.hpp"
#include "realtime.hpp"
#include "timer_slack.hpp"

namespace lagometer::engine {
namespace {

using nlohmann::json;

constexpr int64_t kPeriod_ns = 1'000'000;
constexpr int64_t kHeadStart_ns = 5'000'000;

struct Core {
  int cpu = 0;
  std::vector<int64_t> late_ns;
  std::string warning;
  std::string late;  ///< why its sleeps may end late; empty: they don't
  bool pinned = false;
  bool fifo = false;
};

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) throw std::runtime_error("the CPUs of this process can't be read");
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

/// Runs on the core's own thread. `prepared` returns the common start once every thread is pinned and has its policy.
template <typename Prepared>
void watch(Core& core, int priority, Prepared prepared) noexcept {
  core.pinned = pin_thread({core.cpu});
  core.late = sleep_on_time();
  const sched_param parameter{.sched_priority = priority};
  core.fifo = sched_setscheduler(0, SCHED_FIFO, &parameter) == 0;
  if (!core.fifo) core.warning = std::strerror(errno);
  const int64_t begin_ns = prepared();
  for (size_t index = 0; index < core.late_ns.size(); ++index) {
    const int64_t due_ns = begin_ns + static_cast<int64_t>(index) * kPeriod_ns;
    const timespec due{.tv_sec = due_ns / kNanosecondsPerSecond, .tv_nsec = due_ns % kNanosecondsPerSecond};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
    }
    core.late_ns[index] = now_ns() - due_ns;
  }
}

/// The smallest value that is not exceeded by at least this many thousandths of all values.
int64_t quantile(const std::vector<int64_t>& sorted, size_t thousandths) {
  const size_t rank = (sorted.size() * thousandths + 999) / 1000;
  return sorted[std::max<size_t>(rank, 1) - 1];
}

json figures(Core& core) {
  std::sort(core.late_ns.begin(), core.late_ns.end());
  return {{"cpu", core.cpu},
          {"n", core.late_ns.size()},
          {"p50_ns", quantile(core.late_ns, 500)},
          {"p99_ns", quantile(core.late_ns, 990)},
          {"p999_ns", quantile(core.late_ns, 999)},
          {"max_ns", core.late_ns.back()}};
}

}  // namespace

json measure_wake_up(int64_t duration_ns, int priority) {
  const auto count = static_cast<size_t>(std::max<int64_t>(1, duration_ns / kPeriod_ns));
  std::vector<Core> cores;
  for (const int cpu : usable_cpus()) {
    cores.emplace_back();
    cores.back().cpu = cpu;
    cores.back().late_ns.assign(count, 0);  // touched now, to avoid page faults while measuring
  }
  json warnings = json::array();
  if (mlockall(MCL_CURRENT) != 0) warnings.push_back(std::string("memory not locked: ") + std::strerror(errno));
  int64_t begin_ns = 0;
  std::barrier all_prepared(static_cast<std::ptrdiff_t>(cores.size()),
                            [&begin_ns]() noexcept { begin_ns = now_ns() + kHeadStart_ns; });
  const auto prepared = [&all_prepared, &begin_ns] {
    all_prepared.arrive_and_wait();
    return begin_ns;
  };
  {
    std::vector<std::jthread> threads;
    threads.reserve(cores.size());
    for (Core& core : cores) threads.emplace_back([&core, priority, prepared] { watch(core, priority, prepared); });
  }
  json rows = json::array();
  bool fifo = true;
  for (Core& core : cores) {
    const std::string where = "CPU " + std::to_string(core.cpu) + ": ";
    if (!core.pinned) throw std::runtime_error(where + "a thread can't be pinned to it");
    if (!core.late.empty()) throw std::runtime_error(where + core.late);
    if (!core.fifo) warnings.push_back(where + "SCHED_FIFO not granted: " + core.warning);
    fifo = fifo && core.fifo;
    rows.push_back(figures(core));
  }
  return {{"policy", fifo ? "fifo" : "other"},
          {"period_ns", kPeriod_ns},
          {"duration_ns", static_cast<int64_t>(count) * kPeriod_ns},
          {"cores", rows},
          {"warnings", warnings}};
}

}  // namespace lagometer::engine
