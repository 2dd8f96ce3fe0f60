// SPDX-License-Identifier: Apache-2.0
// One subscriber: roscpp calls back with a message, which waits here until it is taken, and is held until released.
#pragma once

#include <ros/subscriber.h>

#include <array>
#include <boost/shared_ptr.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "objects.hpp"

namespace lagometer::ros1 {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void attach(std::shared_ptr<Queue> waited);
  void enable();
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] nlohmann::json describe() const;

 private:
  /// A message that roscpp has handed over.
  struct Arrived {
    boost::shared_ptr<const void> message;
    lagometer_region bytes{};
    int64_t receipt_ns = 0;  // wall clock, as roscpp has it
  };
  /// In the order of their arrival. Up to a history of kRoomMax the room is there from the start.
  class Waiting {
   public:
    /// `depth` 0: without limit.
    explicit Waiting(uint32_t depth);
    /// Whether the oldest had to go for it.
    bool push(Arrived&& arrived);
    Arrived pop() noexcept;
    [[nodiscard]] size_t count() const noexcept { return count_; }

   private:
    static constexpr size_t kRoomMax = 4096;
    size_t limit_;
    std::vector<Arrived> room_;
    size_t oldest_ = 0;
    size_t count_ = 0;
  };
  static constexpr uint32_t kLentMax = 64;  // samples taken and not released yet

  template <typename Message>
  void subscribe();
  void arrived(Arrived&& arrived);
  /// Moves the oldest waiting message into the sample; false: there is none, or too many are taken and not released.
  bool lend(lagometer_sample& sample) noexcept;
  static void show(const Arrived& arrived, lagometer_sample& sample) noexcept;

  Node& node_;
  Endpoint endpoint_;
  uint32_t dispatch_;
  void* user_;
  lagometer_data_function on_data_;
  std::shared_ptr<Queue> queue_;  // of the node's spinner, of the waitset, or, polled, of this reader alone
  std::mutex mutex_;              // guards the three below: a spinner's thread brings what another one may take
  Waiting waiting_;
  std::array<Arrived, kLentMax> lent_;
  std::array<bool, kLentMax> in_use_{};
  ros::Subscriber subscriber_;
};

}  // namespace lagometer::ros1
