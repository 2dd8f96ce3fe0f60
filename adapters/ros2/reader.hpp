// SPDX-License-Identifier: Apache-2.0
// One subscription: an executor's callback delivers a listener's messages; the node's own thread takes all others.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "arrivals.hpp"
#include "messages.hpp"
#include "missed.hpp"
#include "objects.hpp"

namespace lagometer::ros2 {

/// A message that rclcpp has delivered.
struct Arrived {
  std::shared_ptr<const void> message;
  Regions regions{};
  int64_t source_ns = 0;     // wall clock; 0: not known
  int64_t reception_ns = 0;  // the same
  uint64_t writer_id = 0;
  uint64_t sequence = 0;
  std::optional<rmw_request_id_t> request;  // for a request that has not been answered
};

/// A number from the rmw's identifier of a writer.
uint64_t writer_id_of(std::span<const uint8_t> gid) noexcept;

class ServiceEnd;

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  /// For a client or a server.
  Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
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

  /// A subscription to one message type, or what a client or a server takes from.
  class Inlet {
   public:
    virtual ~Inlet() = default;
    /// Takes the next message that waits in the middleware; returns false if there is none.
    virtual bool take(Arrived& arrived) = 0;
    virtual void join(Waitset& waitset) = 0;
    virtual void matched(lagometer_matched& out) const = 0;
    virtual void counters(lagometer_counters&) const {}

   protected:
    Inlet() = default;
    Inlet(const Inlet&) = default;
    Inlet& operator=(const Inlet&) = default;
  };
  /// Where a listener's callback delivers messages; it outlives the reader if the executor still holds the callback.
  class Door {
   public:
    explicit Door(Reader& reader) : reader_(&reader) {}
    void enter(Arrived&& arrived);
    /// Returns when no message is being delivered, and accepts none afterwards.
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
  std::shared_ptr<ServiceEnd> service_;  // null: a topic
  std::unique_ptr<Inlet> inlet_;
};

}  // namespace lagometer::ros2
