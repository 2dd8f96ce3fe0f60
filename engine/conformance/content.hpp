// SPDX-License-Identifier: Apache-2.0
// The content of a check's message: the envelope, then bytes computed from its stream, its sequence and their position,
// so that a receiver knows each of them without having seen the sender. If eight more bytes fit, the payload's length
// comes first, to tell a truncated message from a short one. Where a type has text, everything is converted to text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "envelope.hpp"
#include "payload_type.hpp"

namespace lagometer::conformance {

using engine::Envelope;
using engine::MessageKind;
using engine::PayloadType;

constexpr uint64_t kBlockBytes = 8;
using Block = std::array<uint8_t, kBlockBytes>;
inline constexpr const PayloadType& kBytes = engine::kPayloadTypes.front();

/// The finaliser of splitmix64: every bit of its argument affects every bit of the result.
inline uint64_t mixed(uint64_t value) noexcept {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

/// Eight-byte block `index` of an envelope, as this type has it.
inline Block envelope_block(const PayloadType& type, const Envelope& envelope, uint64_t index) noexcept {
  std::array<uint8_t, LAGOMETER_TEXT_ENVELOPE_BYTES> bytes{};
  if (type.text_envelope)
    engine::write_text_envelope(bytes.data(), envelope);
  else
    engine::write_envelope(bytes.data(), envelope);
  Block block;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(index * kBlockBytes), kBlockBytes, block.begin());
  return block;
}

/// Eight-byte block `index` of a payload of `bytes` bytes.
inline Block block_at(const PayloadType& type, const Envelope& envelope, uint64_t bytes, uint64_t index) noexcept {
  const uint64_t length_block = type.envelope_bytes() / kBlockBytes;
  if (index < length_block) return envelope_block(type, envelope, index);
  const bool is_length = index == length_block && bytes >= (length_block + 1) * kBlockBytes;
  const uint64_t value =
      is_length ? bytes : mixed((uint64_t{envelope.stream} << 44U) ^ (envelope.sequence << 24U) ^ index);
  Block block;
  std::memcpy(block.data(), &value, sizeof value);
  if (type.text) std::transform(block.begin(), block.end(), block.begin(), engine::as_character);
  return block;
}

/// Calls visit(place, expected, length) for each piece of a region that begins `offset` bytes into the payload.
template <typename Visit>
void each_piece(const PayloadType& type, const lagometer_region& region, uint64_t offset, const Envelope& envelope,
                uint64_t bytes, Visit&& visit) {
  for (uint64_t at = 0; at < region.size;) {
    const uint64_t within = (offset + at) % kBlockBytes;
    const uint64_t length = std::min(kBlockBytes - within, region.size - at);
    const Block block = block_at(type, envelope, bytes, (offset + at) / kBlockBytes);
    visit(region.data + at, block.data() + within, length);
    at += length;
  }
}

inline uint64_t bytes_of(const lagometer_region* regions, uint32_t count) noexcept {
  uint64_t bytes = 0;
  for (uint32_t index = 0; index < count && index < LAGOMETER_REGIONS_MAX; ++index) bytes += regions[index].size;
  return bytes;
}

/// Writes the whole payload into the memory that borrow() returned.
inline void fill(const lagometer_message& message, const Envelope& envelope,
                 const PayloadType& type = kBytes) noexcept {
  const uint64_t bytes = bytes_of(message.regions, message.region_count);
  uint64_t offset = 0;
  for (uint32_t index = 0; index < message.region_count; ++index) {
    each_piece(type, message.regions[index], offset, envelope, bytes,
               [](uint8_t* place, const uint8_t* expected, uint64_t length) { std::memcpy(place, expected, length); });
    offset += message.regions[index].size;
  }
}

/// What a sample contained. damage: what is wrong with it, "" if it is what its sender wrote.
struct Opened {
  Envelope envelope;
  uint64_t bytes = 0;
  std::string damage;
};

/// Compares every byte of a sample with what its sender must have written.
inline Opened open(const lagometer_sample& sample, const PayloadType& type = kBytes) {
  Opened opened;
  opened.bytes = bytes_of(sample.regions, sample.region_count);
  const std::string size = "a message of " + std::to_string(opened.bytes) + " bytes";
  if (sample.region_count < 1 || sample.region_count > LAGOMETER_REGIONS_MAX ||
      sample.regions[0].size < type.envelope_bytes()) {
    opened.damage = size + " in " + std::to_string(sample.region_count) + " regions has no whole envelope";
    return opened;
  }
  const uint8_t* const data = sample.regions[0].data;
  opened.envelope = type.text_envelope ? engine::read_text_envelope(data) : engine::read_envelope(data);
  if (opened.envelope.magic != engine::kEnvelopeMagic || opened.envelope.version != engine::kEnvelopeVersion) {
    opened.damage = size + " does not begin with an envelope";
    return opened;
  }
  uint64_t offset = 0;
  std::optional<uint64_t> wrong;
  for (uint32_t index = 0; index < sample.region_count && !wrong; ++index) {
    const lagometer_region& region = sample.regions[index];
    each_piece(type, region, offset, opened.envelope, opened.bytes,
               [&](const uint8_t* place, const uint8_t* expected, uint64_t length) {
                 if (!wrong && std::memcmp(place, expected, length) != 0)
                   wrong = offset + static_cast<uint64_t>(place - region.data);
               });
    offset += region.size;
  }
  if (wrong) {
    opened.damage = size + " (stream " + std::to_string(opened.envelope.stream) + ", sequence " +
                    std::to_string(opened.envelope.sequence) + ") differs from byte " + std::to_string(*wrong) + " on";
  }
  return opened;
}

}  // namespace lagometer::conformance
