// SPDX-License-Identifier: Apache-2.0
#include "heap_offset.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace lagometer::engine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAllocatorOfItsOwn = true;
#else
constexpr bool kAllocatorOfItsOwn = false;
#endif

/// Where in its page a message's buffer begins that is allocated with the heap moved by so many bytes.
uintptr_t place_with(uint32_t offset_bytes) {
  constexpr size_t kMessageBytes = 100'000;
  const HeapOffset offset(offset_bytes);
  const std::unique_ptr<void, decltype(&std::free)> message(std::malloc(kMessageBytes), &std::free);
  return reinterpret_cast<uintptr_t>(message.get()) % 4096;
}

TEST(HeapOffset, MovesWhatIsAllocatedAfterIt) {
  if (kAllocatorOfItsOwn) GTEST_SKIP() << "skipped: the sanitizer's allocator has another order";
  const uintptr_t unmoved = place_with(0);
  for (const uint32_t bytes : {16U, 1024U, 4080U}) {
    EXPECT_EQ((place_with(bytes) - unmoved) % 4096, bytes) << "moved by " << bytes;
  }
  EXPECT_EQ(place_with(0), unmoved) << "it goes on after its end";
}

}  // namespace
}  // namespace lagometer::engine
