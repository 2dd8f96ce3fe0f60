// SPDX-License-Identifier: Apache-2.0
// A subscriber in shared memory: an inbox that writers put slot numbers into, and the writers' pools mapped.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "context.hpp"
#include "rendezvous.hpp"

namespace lagometer::shm {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out);

  /// A waitset serves this reader from now on, at this bell. Call it before enable. Returns its slot among the
  /// waitset's readers.
  uint32_t attach(std::shared_ptr<Readers> waitset, std::shared_ptr<Segment> bell);
  [[nodiscard]] bool has_data() const noexcept;
  /// Whether there is something for which the listener has not been called.
  [[nodiscard]] bool has_news() const noexcept;
  /// Calls the listener if there is news; returns true if it did. [thread: the context's]
  bool notify_listener() noexcept;

  [[nodiscard]] const floor::Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] uint32_t queue_limit() const noexcept { return queue_limit_; }

 private:
  /// This process's side of a place.
  struct Source {
    std::shared_ptr<Segment> segment;
    Pool* pool = nullptr;
    uint32_t held = 0;
    std::atomic<uint64_t> noticed{0};  // queue position up to which the listener was called
  };

  [[nodiscard]] bool open_source(Place& place, Source& source);
  void close_source(Place& place, Source& source) noexcept;
  void take_from(uint32_t index, lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) noexcept;
  void show(lagometer_sample& sample, uint32_t index, uint32_t slot) noexcept;
  uint32_t notice() noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  uint32_t queue_limit_;
  std::shared_ptr<Readers> served_by_;
  uint32_t served_slot_ = 0;
  std::shared_ptr<Segment> bell_;
  std::shared_ptr<Segment> segment_;
  Inbox* inbox_ = nullptr;
  std::optional<rendezvous::Announcement> announcement_;
  std::array<Source, connections_max> sources_;
  std::mutex sources_mutex_;  // guards arriving and leaving writers, and queries about them
  uint64_t overwritten_by_gone_ = 0;
  uint32_t next_place_ = 0;
  uint64_t taken_total_ = 0;
  bool listening_ = false;  // inside the listener; used by the context's thread only
  int64_t signalled_ns_ = 0;
  uint32_t signalled_cpu_ = 0;
};

}  // namespace lagometer::shm
