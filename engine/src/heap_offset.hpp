// SPDX-License-Identifier: Apache-2.0
// Where within a page the buffers of a worker and its middleware begin. The kernel moves the heap only by whole pages,
// so without this the position would be the same in every trial. It decides how fast large messages are copied: copies
// are slower if source and destination begin within a few bytes of the same position in a page
// (docs/methodology/campaigns.md).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace lagometer::engine {

/// While it lives, moves everything that is allocated later by this many bytes. Create it before an adapter is loaded,
/// on the main thread. Arenas that the allocator keeps for other threads do not move.
class HeapOffset {
 public:
  /// Throws std::bad_alloc.
  explicit HeapOffset(uint32_t bytes);

 private:
  struct Free {
    void operator()(void* block) const noexcept { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;  // never touched, so it costs addresses but no memory
};

}  // namespace lagometer::engine
