// SPDX-License-Identifier: Apache-2.0
// The requested settings of an endpoint. Settings left open are as the library's vendor ships them, not as in the floor
// adapters.
#pragma once

#include <cstdint>
#include <optional>

#include "floor.hpp"

namespace lagometer::brokerless {

using floor::Abilities;

struct Endpoint : floor::Endpoint {
  Endpoint(const Abilities& abilities, const PayloadType& payload_type, const lagometer_endpoint_config& config)
      : floor::Endpoint(abilities, payload_type, config) {
    const uint64_t present = config.qos == nullptr ? 0 : config.qos->present;
    if ((present & LAGOMETER_QOS_RELIABILITY) == 0) reliable = false;
    if ((present & LAGOMETER_QOS_HISTORY) != 0 && !keep_all) depth_asked = static_cast<int>(depth);
  }

  /// The depth of KEEP_LAST, if requested.
  std::optional<int> depth_asked;
};

/// The payload type of an adapter with these abilities, as the binding creates it.
template <typename Context, const Abilities& abilities>
struct Type {
  Type(Context&, const lagometer_type_config& config) : payload(floor::payload_type(abilities, config)) {}
  static Endpoint endpoint(const lagometer_endpoint_config& config) {
    return {abilities, reinterpret_cast<const Type*>(config.type)->payload, config};
  }
  PayloadType payload;
};

/// Fills a sample with one region and nothing else.
inline void show(lagometer_sample& sample, const void* data, uint64_t bytes, bool loaned) noexcept {
  sample.flags = loaned ? LAGOMETER_SAMPLE_LOANED : 0;
  sample.region_count = 1;
  // The engine only reads. NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
  sample.regions[0] = {const_cast<uint8_t*>(static_cast<const uint8_t*>(data)), bytes};
  sample.writer_id = sample.middleware_sequence = 0;
  sample.source_time_ns = sample.reception_time_ns = 0;
  sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = 0;
  sample.signalled_cpu = sample.reserved = 0;
  sample.adapter_data = nullptr;
}

}  // namespace lagometer::brokerless
