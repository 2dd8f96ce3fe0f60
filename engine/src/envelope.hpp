// SPDX-License-Identifier: Apache-2.0
// The 16 bytes at the start of every payload, or their 32 hexadecimal digits: who and which, never when
// (docs/PROTOCOL.md, "The envelope").
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

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

/// The envelope where there is text alone: its bytes in their order, two hexadecimal digits each.
inline void write_text_envelope(uint8_t* payload, const Envelope& envelope) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<uint8_t, sizeof envelope> bytes;
  std::memcpy(bytes.data(), &envelope, sizeof envelope);
  for (const uint8_t byte : bytes) {
    *payload++ = static_cast<uint8_t>(kDigits[byte >> 4U]);
    *payload++ = static_cast<uint8_t>(kDigits[byte & 0xFU]);
  }
}

/// What such digits say; other text has no magic.
inline Envelope read_text_envelope(const uint8_t* payload) noexcept {
  std::array<uint8_t, sizeof(Envelope)> bytes;
  unsigned wrong = 0;
  const auto value_of = [&wrong](uint8_t digit) -> unsigned {
    if (digit >= '0' && digit <= '9') return digit - unsigned{'0'};
    if (digit >= 'a' && digit <= 'f') return digit - unsigned{'a'} + 10U;
    ++wrong;
    return 0;
  };
  for (uint8_t& byte : bytes) {
    const unsigned high = value_of(*payload++);
    byte = static_cast<uint8_t>((high << 4U) | value_of(*payload++));
  }
  Envelope envelope;
  std::memcpy(&envelope, bytes.data(), sizeof envelope);
  if (wrong != 0) envelope.magic = 0;
  return envelope;
}

/// A byte as one of 64 printable characters of ASCII, without a space: '0' to 'o'.
constexpr uint8_t as_character(uint64_t byte) noexcept { return static_cast<uint8_t>('0' + (byte & 0x3FU)); }

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
