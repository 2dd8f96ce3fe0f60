// SPDX-License-Identifier: Apache-2.0
// Objects served by one thread, while other threads may add and remove them. The serving thread takes no lock; a thread
// that removes an object waits until the serving thread has left it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "binding.hpp"

namespace lagometer {

template <typename Object, uint32_t Capacity>
class CallbackSlots {
 public:
  /// The slot of a new object. [thread: any]
  uint32_t add(Object& object) {
    for (uint32_t slot = 0; slot < Capacity; ++slot) {
      Object* none = nullptr;
      if (objects_[slot].compare_exchange_strong(none, &object)) {
        uint32_t end = end_.load();
        while (end <= slot && !end_.compare_exchange_weak(end, slot + 1)) {
        }
        return slot;
      }
    }
    throw Error(LAGOMETER_NO_RESOURCE, "more than " + std::to_string(Capacity) + " readers in one context or waitset");
  }

  /// Returns when the object is no longer served. [thread: any but the serving one]
  void remove(uint32_t slot) noexcept {
    Object* const object = objects_[slot].exchange(nullptr);
    removals_.fetch_add(1);
    while (running_.load() == object && object != nullptr) running_.wait(object);
    removals_.fetch_sub(1);
  }

  /// Calls function(object) if the slot is taken. [thread: the serving one]
  template <typename Function>
  void serve(uint32_t slot, Function&& function) noexcept {
    Object* const object = objects_[slot].load(std::memory_order_acquire);
    if (object == nullptr) return;
    // Sequentially consistent, like remove(): either remove() sees `running_`, or this sees the emptied slot.
    running_.store(object);
    if (objects_[slot].load() == object) function(*object);
    running_.store(nullptr);
    if (removals_.load() != 0) running_.notify_all();
  }

  [[nodiscard]] uint32_t end() const noexcept { return end_.load(std::memory_order_acquire); }

 private:
  std::array<std::atomic<Object*>, Capacity> objects_{};
  std::atomic<Object*> running_{nullptr};
  std::atomic<uint32_t> removals_{0};
  std::atomic<uint32_t> end_{0};
};

}  // namespace lagometer
