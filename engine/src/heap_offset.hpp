// SPDX-License-Identifier: Apache-2.0
// Where in a page the buffers begin that a worker and its middleware allocate. The kernel moves the heap by whole pages
// only, so without this it is the same in every trial, and it decides how fast large messages are copied: where source
// and destination begin within a few bytes of the same place of a page, copies are slower
// (docs/methodology/campaigns.md).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace lagometer::engine {

/// Moves what is allocated from now on by so many bytes, as long as it lives. Made before an adapter is loaded, on the
/// main thread. Arenas that the allocator keeps for other threads stay where they are.
class HeapOffset {
 public:
  /// Throws std::bad_alloc.
  explicit HeapOffset(uint32_t bytes);

 private:
  struct Free {
    void operator()(void* block) const noexcept { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;  // never touched, so it costs addresses and no memory
};

}  // namespace lagometer::engine
