// SPDX-License-Identifier: Apache-2.0
#include "heap_offset.hpp"

#include <new>

namespace lagometer::engine {
namespace {

// Larger than the gaps that reading a plan leaves further down in the heap, where a block would move nothing; smaller
// than what the allocator requests from the kernel outside the heap (128 KiB).
constexpr size_t kHeapBlockBytes = size_t{96} << 10;

}  // namespace

HeapOffset::HeapOffset(uint32_t bytes) : block_(std::malloc(kHeapBlockBytes + bytes)) {
  if (block_ == nullptr) throw std::bad_alloc();
}

}  // namespace lagometer::engine
