// SPDX-License-Identifier: Apache-2.0
// What is in the shared files. A writer owns a pool of slots, where its messages are written and read in place. A
// reader owns an inbox: per writer a queue of slot numbers. Nobody ever waits for a lock of another process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bell.hpp"

namespace lagometer::shm {

inline constexpr uint32_t connections_max = 64;  // readers of a writer and writers of a reader: bits of Slot::holders
inline constexpr uint64_t line_bytes = 64;
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr uint64_t round_up(uint64_t value, uint64_t unit) noexcept { return (value + unit - 1) / unit * unit; }

/// One message; the payload follows immediately. Bit n of `holders` is set while the writer's connection n has it
/// queued or taken; a slot without holders is free. Bits instead of a count, so that those of a killed reader can be
/// cleared.
struct alignas(line_bytes) Slot {
  std::atomic<uint64_t> holders;
  uint64_t sequence;
  uint64_t bytes;

  [[nodiscard]] uint8_t* payload() noexcept { return reinterpret_cast<uint8_t*>(this) + sizeof(Slot); }
};
static_assert(sizeof(Slot) == line_bytes);

/// The head of a writer's file; the slots follow.
struct alignas(line_bytes) Pool {
  uint32_t slots;
  uint32_t held_max;    // the most samples that one reader may have taken and not released
  uint64_t slot_bytes;  // from one slot to the next
  uint64_t writer_id;
  Bell room;  // the writer sleeps here until a reader has made room

  [[nodiscard]] Slot& slot(uint32_t index) noexcept {
    return *reinterpret_cast<Slot*>(reinterpret_cast<uint8_t*>(this) + sizeof(Pool) + index * slot_bytes);
  }
  static constexpr uint64_t slot_bytes_for(uint64_t payload_bytes) noexcept {
    return sizeof(Slot) + round_up(payload_bytes, line_bytes);
  }
  static constexpr uint64_t bytes(uint32_t slots, uint64_t slot_bytes) noexcept {
    return sizeof(Pool) + slots * slot_bytes;
  }
};

/// A bounded queue of slot numbers: one producer, one consumer, and the producer may also remove the oldest.
///
/// Both ends remove by moving `head` with compare-exchange, and positions only grow, so exactly one of them gets an
/// entry. The consumer reads the entry before it moves the head. If the producer has removed and overwritten the entry
/// meanwhile, the head is no longer what the consumer saw, and its exchange fails. The exchange releases and the
/// producer's load of the head acquires, so the entry is not overwritten before the consumer has read it.
struct Queue {
  alignas(line_bytes) std::atomic<uint64_t> head;
  alignas(line_bytes) std::atomic<uint64_t> tail;

  /// Sequentially consistent, because bells depend on it (bell.hpp).
  [[nodiscard]] bool empty() const noexcept {
    return head.load(std::memory_order_seq_cst) == tail.load(std::memory_order_seq_cst);
  }
  [[nodiscard]] bool full(uint64_t limit) const noexcept {
    return tail.load(std::memory_order_relaxed) - head.load(std::memory_order_seq_cst) >= limit;
  }

  /// Producer; the queue is not full. The tail publishes the slot's contents and does not wake anybody yet.
  void push(std::atomic<uint32_t>* ring, uint64_t mask, uint32_t slot) noexcept {
    const uint64_t position = tail.load(std::memory_order_relaxed);
    ring[position & mask].store(slot, std::memory_order_relaxed);
    tail.store(position + 1, std::memory_order_seq_cst);
  }

  /// Producer: removes the oldest entry if there are `limit` or more. The tail, which belongs to the producer,
  /// determines which one that is: the consumer may have taken all of them since the head was last read.
  [[nodiscard]] bool drop_oldest(const std::atomic<uint32_t>* ring, uint64_t mask, uint64_t limit,
                                 uint32_t& slot) noexcept {
    const uint64_t end = tail.load(std::memory_order_relaxed) + 1;
    return end > limit && pop(ring, mask, end - limit, slot);
  }

  /// Either end: removes the oldest entry if its position is below `end`.
  [[nodiscard]] bool pop(const std::atomic<uint32_t>* ring, uint64_t mask, uint64_t end, uint32_t& slot) noexcept {
    uint64_t position = head.load(std::memory_order_acquire);
    while (position < end) {
      slot = ring[position & mask].load(std::memory_order_relaxed);
      if (head.compare_exchange_weak(position, position + 1, std::memory_order_seq_cst, std::memory_order_acquire))
        return true;
    }
    return false;
  }
};

/// The lifecycle of a place in an inbox: the writer claims it, fills it in and opens it. The writer closes it when it
/// leaves, and the reader frees it once the queue is empty and all samples are back.
inline constexpr uint32_t place_free = 0;
inline constexpr uint32_t place_claimed = 1;
inline constexpr uint32_t place_open = 2;
inline constexpr uint32_t place_closed = 3;

/// The queue from one writer to one reader.
struct alignas(line_bytes) Place {
  std::atomic<uint32_t> state;
  uint32_t holder_bit;     // number of the bit in Slot::holders
  uint32_t back_pressure;  // 1: the writer waits for room, so taking rings its bell
  uint32_t reserved;
  std::array<char, 192> pool_path;
  std::atomic<uint64_t> overwritten;
  Queue queue;
};

/// The head of a reader's file; the places follow, then one ring of slot numbers for each place.
struct alignas(line_bytes) Inbox {
  std::atomic<uint32_t> closed;      // 1: the reader is gone
  std::atomic<uint32_t> places_end;  // places in use are below
  uint64_t ring_entries;             // a power of two
  std::array<Place, connections_max> places;

  [[nodiscard]] std::atomic<uint32_t>* ring(uint32_t place) noexcept {
    auto* const rings = reinterpret_cast<std::atomic<uint32_t>*>(reinterpret_cast<uint8_t*>(this) + sizeof(Inbox));
    return rings + place * ring_entries;
  }
  [[nodiscard]] uint64_t ring_mask() const noexcept { return ring_entries - 1; }
  static constexpr uint64_t bytes(uint64_t ring_entries) noexcept {
    return sizeof(Inbox) + connections_max * ring_entries * sizeof(std::atomic<uint32_t>);
  }
};

}  // namespace lagometer::shm
