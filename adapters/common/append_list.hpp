// SPDX-License-Identifier: Apache-2.0
// A writer's connections: one thread finds them, another uses them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace lagometer {

/// A list that one thread at a time extends while others iterate over it. Readers need no lock; nothing moves, and
/// nothing is removed before the list itself.
template <typename Item, uint32_t Capacity>
class AppendList {
 public:
  [[nodiscard]] bool full() const noexcept { return size() == Capacity; }
  void append(std::unique_ptr<Item> item) {
    const uint32_t end = size();
    items_[end] = std::move(item);
    size_.store(end + 1, std::memory_order_release);  // publishes the item
  }
  [[nodiscard]] uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] Item& operator[](uint32_t index) const noexcept { return *items_[index]; }

 private:
  std::array<std::unique_ptr<Item>, Capacity> items_{};
  std::atomic<uint32_t> size_{0};
};

}  // namespace lagometer
