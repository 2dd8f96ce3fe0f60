// SPDX-License-Identifier: Apache-2.0
// A publisher in shared memory: a pool of slots, and the inboxes of its subscribers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "append_list.hpp"
#include "context.hpp"
#include "rendezvous.hpp"

namespace lagometer::shm {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message) noexcept;
  void discard(const lagometer_message&) noexcept {}  // a slot without holders is free
  /// Also looks for subscribers: this is where connections are created.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept;

  [[nodiscard]] const floor::Endpoint& endpoint() const noexcept { return endpoint_; }
  [[nodiscard]] uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] uint32_t queue_limit() const noexcept { return queue_limit_; }

 private:
  struct Connection {
    std::string name;  // of the subscriber's announcement; known names are not checked again
    std::atomic<bool> live{false};
    std::shared_ptr<Segment> inbox_segment;
    std::shared_ptr<Segment> bell_segment;
    Inbox* inbox = nullptr;
    Place* place = nullptr;
    std::atomic<uint32_t>* ring = nullptr;
    Bell* bell = nullptr;
    uint64_t limit = 0;
    bool keep_all = false;
    uint64_t holder_bit = 0;

    [[nodiscard]] bool open() const noexcept {
      return live.load(std::memory_order_relaxed) && inbox->closed.load(std::memory_order_relaxed) == 0;
    }
  };

  void connect(rendezvous::Found& found);
  void claim_place(Connection& connection, uint32_t bit);
  [[nodiscard]] bool find_free_slot() noexcept;
  void forget_the_gone() noexcept;
  [[nodiscard]] bool wait_for_room(Connection& connection, int64_t& until_ns) noexcept;
  void deliver(Connection& connection, uint32_t slot) noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  uint32_t queue_limit_;
  uint32_t held_max_;
  uint32_t slots_;
  std::shared_ptr<Segment> segment_;
  Pool* pool_ = nullptr;
  uint32_t slot_ = 0;       // the one borrowed last
  uint32_t next_slot_ = 0;  // where the search for a cold one continues
  uint64_t sequence_ = 0;
  AppendList<Connection, connections_max> connections_;
  std::mutex connect_mutex_;  // between threads that call matched(); the message path does not use it
  std::vector<std::string> refused_names_;
  std::atomic<uint64_t> overwritten_{0};
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::shm
