// SPDX-License-Identifier: Apache-2.0
// One subscription: a listener's messages come by an executor's callback, all others are taken by the node's own
// thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "arrivals.hpp"
#include "messages.hpp"
#include "missed.hpp"
#include "objects.hpp"

namespace lagometer::ros2 {

/// A message that rclcpp has handed over.
struct Arrived {
  std::shared_ptr<const void> message;
  Regions regions{};
  int64_t source_ns = 0;     // wall clock; 0: not known
  int64_t reception_ns = 0;  // the same
  uint64_t writer_id = 0;
  uint64_t sequence = 0;
};

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void attach(Waitset& waitset);
  void enable();
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const;

  /// A subscription of one message type.
  class Inlet {
   public:
    virtual ~Inlet() = default;
    /// The next message that waits in the middleware; false if there is none.
    virtual bool take(Arrived& arrived) = 0;
    [[nodiscard]] virtual rclcpp::SubscriptionBase::SharedPtr subscription() const = 0;

   protected:
    Inlet() = default;
    Inlet(const Inlet&) = default;
    Inlet& operator=(const Inlet&) = default;
  };
  /// Where a listener's callback brings messages; it outlives the reader if the executor still holds the callback.
  class Door {
   public:
    explicit Door(Reader& reader) : reader_(&reader) {}
    void enter(Arrived&& arrived);
    /// Returns when no message is inside, and lets none in afterwards.
    void close();

   private:
    std::mutex mutex_;
    Reader* reader_;
  };

 private:
  void arrived(Arrived&& arrived);

  Endpoint endpoint_;
  uint32_t dispatch_;
  void* user_;
  lagometer_data_function on_data_;
  Waitset* waitset_ = nullptr;
  Arrivals<Arrived> arrivals_;
  std::shared_ptr<Door> door_;
  Missed missed_;
  std::unique_ptr<Inlet> inlet_;
};

}  // namespace lagometer::ros2
