// SPDX-License-Identifier: Apache-2.0
#include "endpoint_events.hpp"

#include <nlohmann/json.hpp>

#include "clock.hpp"
#include "lagometer/adapter.h"

namespace lagometer::engine {

namespace {

constexpr std::array<const char*, 5> kEventNames = {"", "matched", "lost", "deadline_missed", "incompatible_qos"};
static_assert(LAGOMETER_EVENT_MATCHED == 1 && LAGOMETER_EVENT_LOST == 2 && LAGOMETER_EVENT_DEADLINE_MISSED == 3 &&
              LAGOMETER_EVENT_INCOMPATIBLE_QOS == 4);

}  // namespace

void EndpointEvents::offer(const nlohmann::json& abilities, const char* side) {
  const nlohmann::json events = abilities.is_object() ? abilities.value("events", nlohmann::json()) : nlohmann::json();
  if (!events.is_object()) return;
  const nlohmann::json names = events.value(side, nlohmann::json::array());
  for (uint32_t event = 1; event < kEvents; ++event) {
    for (const nlohmann::json& name : names) {
      if (name == kEventNames[event]) offered_ |= 1U << event;
    }
  }
}

void EndpointEvents::happened(const Stage& stage, uint32_t event, uint64_t total) noexcept {
  if (event == 0 || event >= kEvents || (offered_ & (1U << event)) == 0) return;
  const int64_t time_ns = now_ns();
  const uint64_t before = totals_[event].exchange(total, std::memory_order_relaxed);
  if (total > before && stage.measures(time_ns)) {
    measured_[event].fetch_add(total - before, std::memory_order_relaxed);
  }
  if (lane_.wanted()) lane_.add({.total = total, .time_ns = time_ns, .event = event, .zero = 0, .zeros = 0});
}

nlohmann::json EndpointEvents::describe() const {
  nlohmann::json result = nlohmann::json::object();
  for (uint32_t event = 1; event < kEvents; ++event) {
    if ((offered_ & (1U << event)) == 0) continue;
    result[kEventNames[event]] = {{"total", total(event)},
                                  {"measured", measured_[event].load(std::memory_order_relaxed)}};
  }
  return result;
}

}  // namespace lagometer::engine
