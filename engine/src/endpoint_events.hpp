// SPDX-License-Identifier: Apache-2.0
// What the middleware reports about an endpoint on its own threads: matched, lost, deadline missed, incompatible QoS.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "recorder.hpp"
#include "stage.hpp"

namespace lagometer::engine {

/// Counts the events of one endpoint, and keeps each with its time. They come on any of the middleware's threads, from
/// enable to destroy.
class EndpointEvents {
 public:
  /// How many records one endpoint has room for; the counts stay correct if there are more.
  static constexpr uint64_t kCapacity = 256;

  /// Which events the adapter reports for such an endpoint, by its abilities: {"writer": [names], "reader": [names]}.
  void offer(const nlohmann::json& abilities, const char* side);
  [[nodiscard]] bool offered() const noexcept { return offered_ != 0; }
  void record_into(const EventLane& lane) noexcept { lane_ = lane; }

  /// `total`: of this event so far; for LAGOMETER_EVENT_MATCHED: current endpoints. [thread: any; allocates: no]
  void happened(const Stage& stage, uint32_t event, uint64_t total) noexcept;

  [[nodiscard]] uint64_t total(uint32_t event) const noexcept { return totals_[event].load(std::memory_order_relaxed); }
  /// {name: {"total", "measured"}} for each supported event; `measured`: how many in the measure phase.
  [[nodiscard]] nlohmann::json describe() const;

 private:
  static constexpr size_t kEvents = 5;  // and 0, which is not an event

  uint32_t offered_ = 0;  // one bit each
  std::array<std::atomic<uint64_t>, kEvents> totals_{};
  std::array<std::atomic<uint64_t>, kEvents> measured_{};
  EventLane lane_;
};

}  // namespace lagometer::engine
