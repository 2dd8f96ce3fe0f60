// SPDX-License-Identifier: Apache-2.0
#include "envelope.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace lagometer::engine {
namespace {

TEST(Envelope, HasTheBytesOfTheProtocol) {
  std::array<uint8_t, 16> bytes{};
  write_envelope(bytes.data(), {.kind = 1, .stream = 0x04030201, .sequence = 0x0807060504030201});
  const std::array<uint8_t, 16> expected = {0x67, 0x4C, 1, 1, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(bytes, expected);
}

TEST(Envelope, IsReadBackAtAnyAlignment) {
  std::array<uint8_t, 32> bytes{};
  for (size_t at = 0; at < 16; ++at) {
    write_envelope(bytes.data() + at, {.stream = 7, .sequence = at});
    const Envelope read = read_envelope(bytes.data() + at);
    EXPECT_EQ(read.magic, kEnvelopeMagic);
    EXPECT_EQ(read.kind, static_cast<uint8_t>(MessageKind::data));
    EXPECT_EQ(read.stream, 7U);
    EXPECT_EQ(read.sequence, at);
  }
}

TEST(TextEnvelope, IsTheBytesOfTheProtocolAsDigits) {
  std::string text(34, '.');
  write_text_envelope(reinterpret_cast<uint8_t*>(text.data()) + 1,
                      {.kind = 1, .stream = 0x04030201, .sequence = 0xFFEEDDCCBBAA0908});
  EXPECT_EQ(text, ".674c0101010203040809aabbccddeeff.");
}

TEST(TextEnvelope, IsReadBack) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const Envelope written{
        .kind = static_cast<uint8_t>(random() & 1U), .stream = static_cast<uint32_t>(random()), .sequence = random()};
    std::array<uint8_t, LAGOMETER_TEXT_ENVELOPE_BYTES> text{};
    write_text_envelope(text.data(), written);
    const Envelope read = read_text_envelope(text.data());
    EXPECT_EQ(std::memcmp(&read, &written, sizeof read), 0);
    // One character is not a digit: it is no envelope any more.
    text[random() % text.size()] = static_cast<uint8_t>("g /:`G\xC3"[random() % 7]);
    EXPECT_EQ(read_text_envelope(text.data()).magic, 0);
  }
}

TEST(AsCharacter, IsPrintableAndTellsNeighboursApart) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    EXPECT_GT(as_character(byte), 0x20U);
    EXPECT_LT(as_character(byte), 0x7FU);
    EXPECT_NE(as_character(byte), as_character(byte + 1));
  }
}

TEST(SmallEnvelope, KeepsKindAndLowBitsInBytesAndInText) {
  for (const bool text : {false, true}) {
    for (const uint64_t sequence :
         {uint64_t{0}, uint64_t{77}, SmallEnvelope::span(text) - 1, SmallEnvelope::span(text) + 5}) {
      std::array<uint8_t, SmallEnvelope::kBytes> payload{};
      write_small_envelope(payload.data(), {.sequence = sequence}, text);
      const SmallEnvelope read = read_small_envelope(payload.data(), text);
      EXPECT_FALSE(read.probe);
      EXPECT_EQ(read.low, sequence % SmallEnvelope::span(text));
      write_small_envelope(payload.data(),
                           {.kind = static_cast<uint8_t>(MessageKind::probe), .sequence = sequence << 10}, text);
      EXPECT_TRUE(read_small_envelope(payload.data(), text).probe);
      EXPECT_EQ(read_small_envelope(payload.data(), text).low, sequence % SmallEnvelope::span(text));
      if (!text) continue;
      for (const uint8_t byte : payload) EXPECT_TRUE(byte >= '0' && byte <= 'o') << byte;
    }
  }
}

TEST(SmallEnvelope, ASequenceIsTheNearestToTheOneExpected) {
  for (const bool text : {false, true}) {
    const uint64_t span = SmallEnvelope::span(text);
    const auto low = [span](uint64_t sequence) { return static_cast<uint32_t>(sequence % span); };
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{3}, span - 1, span, 5 * span + 2}) {
      EXPECT_EQ(nearest_sequence(low(sequence), sequence, text), sequence);
      EXPECT_EQ(nearest_sequence(low(sequence), sequence + 100, text), sequence) << "overtaken";
      if (sequence >= 2) {
        EXPECT_EQ(nearest_sequence(low(sequence), sequence - 2, text), sequence) << "after a gap";
      }
    }
    EXPECT_EQ(nearest_sequence(low(span - 1), 0, text), span - 1) << "nothing is before 0";
  }
}

TEST(Touch, WritesOneByteOfEveryLineFromTheOffset) {
  std::vector<uint8_t> bytes(300, 0xEE);
  touch_write(bytes.data(), bytes.size(), kCacheLineBytes, 0x1FF);
  for (size_t at = 0; at < bytes.size(); ++at) {
    const bool touched = at >= 64 && at % 64 == 0;
    EXPECT_EQ(bytes[at], touched ? 0xFF : 0xEE) << at;
  }
}

TEST(Touch, LeavesThePayloadOfOneLineAlone) {
  std::vector<uint8_t> bytes(64, 0xEE);
  touch_write(bytes.data(), bytes.size(), kCacheLineBytes, 1);
  EXPECT_EQ(bytes, std::vector<uint8_t>(64, 0xEE));
}

TEST(Touch, ReadsOneByteOfEveryLine) {
  std::vector<uint8_t> bytes(200, 100);
  bytes[0] = 1;
  bytes[64] = 2;
  bytes[128] = 3;
  bytes[192] = 4;
  EXPECT_EQ(touch_read(bytes.data(), bytes.size()), 10U);
  EXPECT_EQ(touch_read(bytes.data(), 0), 0U);
}

}  // namespace
}  // namespace lagometer::engine
