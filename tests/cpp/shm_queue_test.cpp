// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "layout.hpp"

namespace lagometer::shm {
namespace {

constexpr uint64_t kLimit = 4;
constexpr uint64_t kMask = 7;

struct Filled {
  Queue queue{};
  std::array<std::atomic<uint32_t>, kMask + 1> ring{};
  Filled() {
    for (uint32_t slot = 0; slot < kLimit; ++slot) queue.push(ring.data(), kMask, slot);
  }
  bool drop(uint32_t& slot) { return queue.drop_oldest(ring.data(), kMask, kLimit, slot); }
  bool take(uint32_t& slot) { return queue.pop(ring.data(), kMask, queue.tail.load(), slot); }
};

TEST(ShmQueue, DropsTheOldestWhereThereIsNoRoom) {
  Filled filled;
  uint32_t slot = 99;
  EXPECT_TRUE(filled.drop(slot));
  EXPECT_EQ(slot, 0U);
  EXPECT_FALSE(filled.drop(slot)) << "there is room now";
}

TEST(ShmQueue, DropsNothingThatIsNotThere) {
  Filled filled;
  uint32_t slot = 99;
  ASSERT_TRUE(filled.queue.full(kLimit));
  while (filled.take(slot)) continue;  // between the producer's look and its dropping
  EXPECT_FALSE(filled.drop(slot));
  EXPECT_TRUE(filled.queue.empty());
  EXPECT_FALSE(filled.queue.full(kLimit));
}

TEST(ShmQueue, NeverLosesItsEndsToEachOther) {
  Filled filled;
  constexpr uint32_t kMessages = 200'000;
  std::atomic<bool> ended{false};
  std::thread consumer([&] {
    uint32_t slot = 0;
    while (!ended.load()) {
      if (!filled.take(slot)) std::this_thread::yield();
    }
  });
  bool kept = true;
  for (uint32_t message = 0; message < kMessages && kept; ++message) {
    uint32_t oldest = 0;
    while (filled.drop(oldest)) continue;
    filled.queue.push(filled.ring.data(), kMask, message);
    kept = filled.queue.head.load() <= filled.queue.tail.load();
  }
  ended.store(true);
  consumer.join();
  EXPECT_TRUE(kept) << "the head passed the tail";
}

}  // namespace
}  // namespace lagometer::shm
