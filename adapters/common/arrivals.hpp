// SPDX-License-Identifier: Apache-2.0
// For middleware that passes messages to a callback: a message waits here until it is taken, and is kept until it is
// released.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace lagometer {

/// What one reader has received, in order of arrival. `Arrived` owns its message and is empty when default-constructed.
/// [push: one thread; lend and give_back: one thread, possibly another. They only wait for each other's moves.] Room
/// for a history up to kRoomMax is allocated at the start.
template <typename Arrived>
class Arrivals {
 public:
  /// `depth` 0: no limit.
  explicit Arrivals(uint32_t depth)
      : limit_(depth != 0 ? depth : std::numeric_limits<size_t>::max()), room_(std::min(limit_, kRoomMax)) {}

  /// Returns whether the oldest was dropped to make room.
  bool push(Arrived&& arrived) {
    Arrived dropped;  // freed after the lock: freeing a megabyte takes time
    const std::scoped_lock lock(mutex_);
    const bool full = count_ == limit_;
    if (full) dropped = pop();
    if (count_ == room_.size()) grow();
    room_[(oldest_ + count_) % room_.size()] = std::move(arrived);
    ++count_;
    return full;
  }
  /// The oldest that waits, kept until it is given back. Null: none waits, or too many are lent.
  Arrived* lend() noexcept {
    const std::scoped_lock lock(mutex_);
    const auto place = std::find(in_use_.begin(), in_use_.end(), false);
    if (count_ == 0 || place == in_use_.end()) return nullptr;
    *place = true;
    Arrived& lent = lent_[static_cast<size_t>(place - in_use_.begin())];
    lent = pop();
    return &lent;
  }
  void give_back(Arrived* lent) noexcept {
    const Arrived freed = std::exchange(*lent, {});
    const std::scoped_lock lock(mutex_);
    in_use_[static_cast<size_t>(lent - lent_.data())] = false;
  }
  [[nodiscard]] size_t waiting() noexcept {
    const std::scoped_lock lock(mutex_);
    return count_;
  }

 private:
  static constexpr size_t kRoomMax = 4096;
  static constexpr uint32_t kLentMax = 64;  // taken and not released yet

  Arrived pop() noexcept {
    Arrived result = std::move(room_[oldest_]);
    oldest_ = (oldest_ + 1) % room_.size();
    --count_;
    return result;
  }
  void grow() {
    std::rotate(room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(oldest_), room_.end());
    oldest_ = 0;
    room_.resize(2 * count_);
  }

  std::mutex mutex_;
  size_t limit_;
  std::vector<Arrived> room_;
  size_t oldest_ = 0;
  size_t count_ = 0;
  std::array<Arrived, kLentMax> lent_;
  std::array<bool, kLentMax> in_use_{};
};

/// Reusable messages of one endpoint. A message that somebody else still holds by its pointer must not be written to,
/// so there are as many as are held at once. `Pointer` is a shared pointer; `Make` creates a new one.
template <typename Pointer, typename Make>
class MessagePool {
 public:
  explicit MessagePool(Make make) : make_(std::move(make)) {}

  /// A message that nobody else holds, until the next call.
  const Pointer& next() {
    for (size_t tried = 0; tried < messages_.size(); ++tried) {
      current_ = current_ + 1 < messages_.size() ? current_ + 1 : 0;
      if (messages_[current_].use_count() == 1) return messages_[current_];
    }
    messages_.push_back(make_());
    current_ = messages_.size() - 1;
    return messages_[current_];
  }
  [[nodiscard]] const Pointer& current() const { return messages_[current_]; }

 private:
  Make make_;
  std::vector<Pointer> messages_;
  size_t current_ = 0;
};

}  // namespace lagometer
