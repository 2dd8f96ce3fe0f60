// SPDX-License-Identifier: Apache-2.0
// One lcm_t and those who subscribe through it.
#pragma once

#include <lcm/lcm.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "binding.hpp"

namespace lagometer::lcm {

/// One whom an instance hands messages.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  /// The buffer is LCM's and valid during the call. [thread: of handle()]
  virtual void receive(const lcm_recv_buf_t& buffer) noexcept = 0;
  /// Whether it can receive one more without losing any.
  [[nodiscard]] virtual bool has_room() const noexcept = 0;

 protected:
  Subscriber() = default;
  Subscriber(const Subscriber&) = default;
  Subscriber& operator=(const Subscriber&) = default;
};

/// LCM's handlers are called by whoever calls lcm_handle(): what one thread handles is an instance of its own. It has a
/// thread of LCM's, which receives, from the first subscription on.
class Instance {
 public:
  /// `url`: of the provider, e.g. "udpm://239.255.76.67:7667?ttl=0".
  explicit Instance(const std::string& url);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();

  /// Any thread may publish. False: the kernel had no room.
  bool publish(const std::string& channel, const void* data, uint64_t bytes);

  /// `queue_messages`: how many LCM may hold for it; 0: as many as by its own default.
  void subscribe(const std::string& channel, Subscriber& subscriber, int queue_messages);
  /// Returns when the subscriber is called no more.
  void unsubscribe(Subscriber& subscriber) noexcept;

  /// Becomes readable when there is something to handle. After the first subscription.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// Hands over one message, which there must be: the descriptor is readable, and no other thread handles.
  void handle();
  /// The same if there is one, and if all subscribers have room; else false.
  bool handle_if_any();
  /// Whoever waited on the descriptor found it readable: the next handle_if_any() need not look.
  void note_readable() noexcept { known_readable_ = true; }

 private:
  struct Subscription {
    Subscriber* subscriber;
    lcm_subscription_t* handle;
  };

  static void on_message(const lcm_recv_buf_t* buffer, const char* channel, void* user) noexcept;

  lcm_t* lcm_;
  int descriptor_ = -1;
  bool known_readable_ = false;  // the handling thread's own
  std::atomic<uint32_t> leaving_{0};
  std::mutex handling_;  // while handlers run, and while the list of subscriptions changes
  std::vector<Subscription> subscriptions_;
};

}  // namespace lagometer::lcm
