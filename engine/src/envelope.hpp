// SPDX-License-Identifier: Apache-2.0
// The 16 bytes at the start of every payload, or their 32 hexadecimal digits: they say who sent it and which message it
// is, never when (docs/PROTOCOL.md, "The envelope").
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

/// What a payload smaller than an envelope has in its first four bytes: the kind and the low bits of the sequence; in a
/// probe the low bits of its send time, in units of 1,024 ns. In text, four characters hold six bits each.
struct SmallEnvelope {
  static constexpr uint64_t kBytes = LAGOMETER_PAYLOAD_BYTES_MIN;
  static constexpr unsigned kTimeShift = 10;

  bool probe = false;
  uint32_t low = 0;

  static constexpr unsigned sequence_bits(bool text) noexcept { return text ? 23 : 31; }
  static constexpr uint64_t span(bool text) noexcept { return uint64_t{1} << sequence_bits(text); }
};

constexpr uint64_t kCacheLineBytes = 64;

inline void write_envelope(uint8_t* payload, const Envelope& envelope) noexcept {
  std::memcpy(payload, &envelope, sizeof envelope);
}

inline Envelope read_envelope(const uint8_t* payload) noexcept {
  Envelope envelope;
  std::memcpy(&envelope, payload, sizeof envelope);
  return envelope;
}

/// The envelope for text-only payloads: its bytes in order, two hexadecimal digits each.
inline void write_text_envelope(uint8_t* payload, const Envelope& envelope) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<uint8_t, sizeof envelope> bytes;
  std::memcpy(bytes.data(), &envelope, sizeof envelope);
  for (const uint8_t byte : bytes) {
    *payload++ = static_cast<uint8_t>(kDigits[byte >> 4U]);
    *payload++ = static_cast<uint8_t>(kDigits[byte & 0xFU]);
  }
}

/// The envelope that these digits encode; other text has no magic.
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

inline void write_small_envelope(uint8_t* payload, const Envelope& envelope, bool text) noexcept {
  const bool probe = envelope.kind == static_cast<uint8_t>(MessageKind::probe);
  const uint64_t number = probe ? envelope.sequence >> SmallEnvelope::kTimeShift : envelope.sequence;
  auto bits = static_cast<uint32_t>(number & (SmallEnvelope::span(text) - 1));
  if (probe) bits |= uint32_t{1} << SmallEnvelope::sequence_bits(text);
  if (!text) {
    std::memcpy(payload, &bits, sizeof bits);
    return;
  }
  for (unsigned place = 0; place < SmallEnvelope::kBytes; ++place) payload[place] = as_character(bits >> (6 * place));
}

inline SmallEnvelope read_small_envelope(const uint8_t* payload, bool text) noexcept {
  uint32_t bits = 0;
  if (text) {
    for (unsigned place = 0; place < SmallEnvelope::kBytes; ++place)
      bits |= ((payload[place] - uint32_t{'0'}) & 0x3FU) << (6 * place);
  } else {
    std::memcpy(&bits, payload, sizeof bits);
  }
  return {.probe = (bits >> SmallEnvelope::sequence_bits(text)) != 0,
          .low = bits & static_cast<uint32_t>(SmallEnvelope::span(text) - 1)};
}

/// The number with these low bits that is nearest to the expected one.
constexpr uint64_t nearest_sequence(uint32_t low, uint64_t expected, bool text) noexcept {
  const uint64_t span = SmallEnvelope::span(text);
  const uint64_t ahead = (low - expected) & (span - 1);
  return ahead < span / 2 || expected + ahead < span ? expected + ahead : expected + ahead - span;
}

/// Writes one byte of every cache line after the envelope's, so that the sender owns the whole payload.
inline void touch_write(uint8_t* data, uint64_t bytes, uint64_t offset, uint64_t sequence) noexcept {
  const auto mark = static_cast<uint8_t>(sequence);
  for (uint64_t at = offset; at < bytes; at += kCacheLineBytes) data[at] = mark;
}

/// Reads one byte of every cache line; returns their sum, so that the compiler does not drop the reads.
inline uint64_t touch_read(const uint8_t* data, uint64_t bytes) noexcept {
  uint64_t sum = 0;
  for (uint64_t at = 0; at < bytes; at += kCacheLineBytes) sum += data[at];
  return sum;
}

}  // namespace lagometer::engine
