// SPDX-License-Identifier: Apache-2.0
#include "realtime.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "trial.hpp"

namespace lagometer::engine {
namespace {

Plan polling_plan(size_t nodes, bool fifo) {
  test::json list = {test::node("source", 999, test::json::array(), {test::writer("topic", 0)}, test::json::array())};
  for (uint32_t index = 0; index < nodes; ++index) {
    list.push_back(test::node("node" + std::to_string(index), index, {test::reader("topic", {})}, test::json::array(),
                              test::json::array()));
    list.back()["dispatch"] = "poll";
  }
  test::json plan = test::plan(NULL_ADAPTER, list);
  if (fifo)
    plan["scheduling"] = {{"policy", "fifo"}, {"priority", 10}, {"cpus", test::json::array()}, {"lock_memory", false}};
  return parse_plan(plan.dump());
}

/// apply_scheduling() changes the calling thread, so each test has one of its own.
template <typename Function>
void on_own_thread(Function&& function) {
  std::thread(std::forward<Function>(function)).join();
}

TEST(Scheduling, RefusesAsManySpinningFifoThreadsAsCpus) {
  on_own_thread([] {
    const auto cpus = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT_THROW(apply_scheduling(polling_plan(cpus, true)), SchedulingRefused);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER) << "it was applied all the same";
    Plan pinned = polling_plan(2, true);
    pinned.scheduling.cpus = {0};
    EXPECT_THROW(apply_scheduling(pinned), SchedulingRefused);
  });
}

TEST(Scheduling, DoesNotCountNodesThatWait) {
  on_own_thread([] {
    Plan plan = polling_plan(64, true);
    for (NodePlan& node : plan.nodes) node.dispatch = Dispatch::waitset;
    EXPECT_NO_THROW(apply_scheduling(plan));
  });
}

TEST(Scheduling, DoesNotRefuseSpinningWithoutFifo) {
  on_own_thread([] { EXPECT_TRUE(apply_scheduling(polling_plan(64, false)).empty()); });
}

TEST(Scheduling, SetsTimerSlackAndReadsItBack) {
  on_own_thread([] {
    apply_scheduling(polling_plan(0, false));
    EXPECT_EQ(prctl(PR_GET_TIMERSLACK), 1);
    const auto threads = read_threads();
    const auto own = std::ranges::find(threads, gettid(), &ThreadFacts::id);
    ASSERT_NE(own, threads.end());
    if (own->timer_slack_ns != -1) {
      EXPECT_EQ(own->timer_slack_ns, 1);
    }
  });
}

TEST(Scheduling, IsAskedForAndReadBackOrWarnedOf) {
  on_own_thread([] {
    Plan plan = polling_plan(0, true);
    plan.scheduling.cpus = {0};
    const auto warnings = apply_scheduling(plan);
    const auto threads = read_threads();
    const auto own = std::ranges::find(threads, gettid(), &ThreadFacts::id);
    ASSERT_NE(own, threads.end());
    const bool warned = std::ranges::any_of(
        warnings, [](const std::string& text) { return text.find("SCHED_FIFO") != std::string::npos; });
    EXPECT_EQ(own->policy, warned ? "other" : "fifo");
    EXPECT_EQ(own->priority, warned ? 0 : 10);
    EXPECT_EQ(own->cpus, std::vector<int>{0});
  });
}

TEST(Scheduling, WarnsOfACpuThatIsNotThere) {
  on_own_thread([] {
    Plan plan = polling_plan(0, false);
    plan.scheduling.cpus = {1023};
    const auto warnings = apply_scheduling(plan);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("affinity"), std::string::npos) << warnings[0];
  });
}

TEST(Threads, AreReadWithTheirNames) {
  std::atomic<bool> named{false};
  std::atomic<bool> seen{false};
  std::thread thread([&] {
    pthread_setname_np(pthread_self(), "named-thread");
    named = true;
    named.notify_all();
    seen.wait(false);
  });
  named.wait(false);
  const auto threads = read_threads();
  EXPECT_EQ(std::ranges::count(threads, "named-thread", &ThreadFacts::name), 1);
  seen = true;
  seen.notify_all();
  thread.join();
}

}  // namespace
}  // namespace lagometer::engine
