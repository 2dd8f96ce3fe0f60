// SPDX-License-Identifier: Apache-2.0
// What lagometer must know about a payload type to write its messages (adapter.h, "PAYLOAD TYPES").
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "lagometer/adapter.h"

namespace lagometer::engine {

struct PayloadType {
  const char* name;
  bool one_size;       // a message is always as large as its endpoint's payload
  bool text_envelope;  // the first region is text and holds the envelope as hexadecimal digits
  bool text;           // the rest is text, too
  uint64_t bytes_min;
  uint64_t probe_bytes_min;
  uint64_t bytes_step = 1;  // sizes are multiples of it
  uint64_t bytes_max = std::numeric_limits<uint64_t>::max();

  /// Whether a payload can have this many bytes, as far as its type decides.
  [[nodiscard]] constexpr bool has_size(uint64_t bytes) const noexcept {
    return bytes >= bytes_min && bytes <= bytes_max && bytes % bytes_step == 0;
  }
  /// The size of a probe for an endpoint with payloads of this many bytes.
  [[nodiscard]] constexpr uint64_t probe_bytes(uint64_t payload_bytes) const noexcept {
    return one_size ? payload_bytes : std::min(payload_bytes, probe_bytes_min);
  }
  [[nodiscard]] constexpr uint64_t envelope_bytes() const noexcept {
    return text_envelope ? LAGOMETER_TEXT_ENVELOPE_BYTES : LAGOMETER_ENVELOPE_BYTES;
  }
};

inline constexpr std::array<PayloadType, 6> kPayloadTypes{{{.name = "bytes",
                                                            .one_size = false,
                                                            .text_envelope = false,
                                                            .text = false,
                                                            .bytes_min = LAGOMETER_PAYLOAD_BYTES_MIN,
                                                            .probe_bytes_min = LAGOMETER_ENVELOPE_BYTES},
                                                           {.name = "fixed",
                                                            .one_size = true,
                                                            .text_envelope = false,
                                                            .text = false,
                                                            .bytes_min = LAGOMETER_ENVELOPE_BYTES,
                                                            .probe_bytes_min = LAGOMETER_ENVELOPE_BYTES},
                                                           {.name = "string",
                                                            .one_size = false,
                                                            .text_envelope = true,
                                                            .text = true,
                                                            .bytes_min = LAGOMETER_PAYLOAD_BYTES_MIN,
                                                            .probe_bytes_min = LAGOMETER_TEXT_ENVELOPE_BYTES},
                                                           {.name = "Image",
                                                            .one_size = false,
                                                            .text_envelope = false,
                                                            .text = false,
                                                            .bytes_min = LAGOMETER_ENVELOPE_BYTES,
                                                            .probe_bytes_min = LAGOMETER_ENVELOPE_BYTES},
                                                           {.name = "Imu",
                                                            .one_size = true,
                                                            .text_envelope = true,
                                                            .text = false,
                                                            .bytes_min = LAGOMETER_IMU_BYTES,
                                                            .probe_bytes_min = LAGOMETER_IMU_BYTES,
                                                            .bytes_max = LAGOMETER_IMU_BYTES},
                                                           {.name = "PointCloud2",
                                                            .one_size = false,
                                                            .text_envelope = false,
                                                            .text = false,
                                                            .bytes_min = LAGOMETER_POINT_BYTES,
                                                            .probe_bytes_min = LAGOMETER_POINT_BYTES,
                                                            .bytes_step = LAGOMETER_POINT_BYTES}}};
static_assert(LAGOMETER_POINT_BYTES >= LAGOMETER_ENVELOPE_BYTES, "one point holds an envelope");

/// The type with this name; "bytes" for an unknown name.
constexpr const PayloadType& payload_type(std::string_view name) noexcept {
  for (const PayloadType& type : kPayloadTypes) {
    if (name == type.name) return type;
  }
  return kPayloadTypes.front();
}

}  // namespace lagometer::engine
