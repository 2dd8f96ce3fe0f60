// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace lagometer::engine {
namespace {

std::vector<int> allowed_cpus() {
  cpu_set_t allowed;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(Clock, EverySourceTellsTheCpuThatTheThreadIsPinnedTo) {
  const CpuSource best = best_cpu_source();
  for (const int cpu : allowed_cpus()) {
    std::thread([&] {
      cpu_set_t only;
      CPU_ZERO(&only);
      CPU_SET(cpu, &only);
      ASSERT_EQ(pthread_setaffinity_np(pthread_self(), sizeof only, &only), 0);
      EXPECT_EQ(current_cpu(CpuSource::kernel), cpu);
      EXPECT_EQ(current_cpu(best), cpu);
    }).join();
  }
}

}  // namespace
}  // namespace lagometer::engine
