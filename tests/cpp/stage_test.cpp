// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace lagometer::engine {
namespace {

TEST(Stage, RunsBetweenStartAndStop) {
  Stage stage;
  EXPECT_FALSE(stage.running());
  stage.start_ns = 1;
  EXPECT_TRUE(stage.running());
  stage.stopped = true;
  EXPECT_FALSE(stage.running());
}

TEST(Parker, SleepsUntilTheTimeGiven) {
  Parker parker;
  const int64_t until_ns = now_ns() + 2'000'000;
  parker.wait_until(until_ns);
  EXPECT_GE(now_ns(), until_ns);
  parker.wait_until(until_ns);  // in the past: returns
}

TEST(Parker, KeepsAWakeThatCameEarly) {
  Parker parker;
  parker.wake();
  parker.wait_until(kNever_ns);
  SUCCEED();
}

TEST(Parker, IsWokenByAnotherThreadEachTime) {
  Parker sleeper;
  Parker waker;
  constexpr int kRounds = 2000;
  std::thread other([&] {
    for (int round = 0; round < kRounds; ++round) {
      sleeper.wake();
      waker.wait_until(kNever_ns);
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    sleeper.wait_until(kNever_ns);
    waker.wake();
  }
  other.join();
  SUCCEED();
}

TEST(SpinLock, LetsOneInAtATime) {
  SpinLock lock;
  int64_t count = 0;
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      for (int round = 0; round < 20'000; ++round) {
        lock.lock();
        ++count;
        lock.unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 80'000);
}

}  // namespace
}  // namespace lagometer::engine
