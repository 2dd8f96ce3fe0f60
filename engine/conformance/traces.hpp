// SPDX-License-Identifier: Apache-2.0
// What an adapter stamped on a message (extension "stamps/1"), to judge whether both sides report the same key.
#pragma once

#include <algorithm>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "lagometer/stamps.h"
#include "objects.hpp"

namespace lagometer::conformance {

/// Asks an endpoint that is not enabled yet for all stamps it supports. Throws Refusal, or std::runtime_error if it has
/// no stamps.
inline void ask_for_stamps(const lagometer_adapter_table& table, uint32_t kind, void* endpoint) {
  const InCall in_call("extension");
  const auto* stamps =
      static_cast<const lagometer_stamps_table*>(table.extension(kind, endpoint, to_c(LAGOMETER_STAMPS_EXTENSION)));
  if (stamps == nullptr) throw std::runtime_error("the endpoint has no extension " LAGOMETER_STAMPS_EXTENSION);
  demand("ask", [&] { return stamps->ask(endpoint, stamps->layers); });
}

/// {"sequence": our own, "writer_id", "middleware_sequence", "source_time_ns", "stamps": [[layer, time_ns, cpu], ...]}
inline nlohmann::json trace_of(uint64_t sequence, const lagometer_stamp_key& key, const lagometer_stamp_list& list) {
  nlohmann::json stamps = nlohmann::json::array();
  const uint32_t count = std::min(list.count, LAGOMETER_STAMPS_MAX);
  for (uint32_t index = 0; index < count; ++index)
    stamps.push_back({list.at[index].layer, list.at[index].time_ns, list.at[index].cpu});
  return {{"sequence", sequence},
          {"writer_id", key.writer_id},
          {"middleware_sequence", key.middleware_sequence},
          {"source_time_ns", key.source_time_ns},
          {"stamps", stamps}};
}

}  // namespace lagometer::conformance
