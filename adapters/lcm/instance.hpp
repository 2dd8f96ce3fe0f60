// SPDX-License-Identifier: Apache-2.0
// One lcm_t and its subscribers.
#pragma once

#include <lcm/lcm.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "binding.hpp"

namespace lagometer::lcm {

/// A receiver of an instance's messages.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  /// The buffer belongs to LCM and is valid during the call. [thread: of handle()]
  virtual void receive(const lcm_recv_buf_t& buffer) noexcept = 0;
  /// Whether it can receive one more without losing a message.
  [[nodiscard]] virtual bool has_room() const noexcept = 0;

 protected:
  Subscriber() = default;
  Subscriber(const Subscriber&) = default;
  Subscriber& operator=(const Subscriber&) = default;
};

/// The caller of lcm_handle() calls LCM's handlers, so each handling thread has its own instance. From the first
/// subscription on, it has a thread of LCM's, which receives.
class Instance {
 public:
  /// `url`: the provider's, e.g. "udpm://239.255.76.67:7667?ttl=0".
  explicit Instance(const std::string& url);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  /// Any thread may publish. Returns false if the kernel had no room.
  bool publish(const std::string& channel, const void* data, uint64_t bytes);

  /// `queue_messages`: how many LCM may hold for it; 0: LCM's own default.
  void subscribe(const std::string& channel, Subscriber& subscriber, int queue_messages);
  /// Returns when the subscriber is no longer called.
  void unsubscribe(Subscriber& subscriber) noexcept;

  /// Becomes readable when there is something to handle. Call it after the first subscription.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Handles one message, which must exist: the descriptor is readable, and no other thread handles.
  void handle();
  /// The same if there is a message and all subscribers have room; otherwise returns false.
  bool handle_if_any();
  /// A wait found the descriptor readable: the next handle_if_any() need not check.
  void note_readable() noexcept { known_readable_ = true; }

 private:
  struct Subscription {
    Subscriber* subscriber;
    lcm_subscription_t* handle;
  };

  static void on_message(const lcm_recv_buf_t* buffer, const char* channel, void* user) noexcept;

  lcm_t* lcm_;
  int descriptor_ = -1;
  bool known_readable_ = false;  // belongs to the handling thread
  std::atomic<uint32_t> leaving_{0};
  std::mutex handling_;  // held while handlers run, and while the list of subscriptions changes
  std::vector<Subscription> subscriptions_;
};

}  // namespace lagometer::lcm
