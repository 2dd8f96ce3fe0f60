// SPDX-License-Identifier: Apache-2.0
// The 16 bytes at the start of every payload: who and which, never when (docs/PROTOCOL.md, "The envelope").
#pragma once

#include <cstdint>
#include <cstring>

#include "lagometer/adapter.h"

namespace lagometer::engine {

constexpr uint16_t kEnvelopeMagic = 0x4C67;
constexpr uint8_t kEnvelopeVersion = 1;
enum class MessageKind : uint8_t { data = 0, probe = 1 };

struct Envelope {
  uint16_t magic = kEnvelopeMagic;
  uint8_t version = kEnvelopeVersion;
  uint8_t kind = 0;
  uint32_t stream = 0;
  uint64_t sequence = 0;
};
static_assert(sizeof(Envelope) == LAGOMETER_ENVELOPE_BYTES);

constexpr uint64_t kCacheLineBytes = 64;

inline void write_envelope(uint8_t* payload, const Envelope& envelope) noexcept {
  std::memcpy(payload, &envelope, sizeof envelope);
}

inline Envelope read_envelope(const uint8_t* payload) noexcept {
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  return envelope;
}

/// Writes one byte of every cache line after the envelope's, so that the sender owns the whole payload.
inline void touch_write(uint8_t* data, uint64_t bytes, uint64_t offset, uint64_t sequence) noexcept {
  const auto mark = static_cast<uint8_t>(sequence);
  for (uint64_t at = offset; at < bytes; at += kCacheLineBytes) data[at] = mark;
}

/// Reads one byte of every cache line; returns their sum, for the compiler not to leave the reading out.
inline uint64_t touch_read(const uint8_t* data, uint64_t bytes) noexcept {
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes; at += kCacheLineBytes) sum += data[at];
  return sum;
}

}  // namespace lagometer::engine
