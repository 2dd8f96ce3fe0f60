// SPDX-License-Identifier: Apache-2.0
// The parser of RTPS: datagrams that Cyclone DDS 0.10.2 and Fast DDS 2.9.1 sent, generated ones, and damaged ones.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "rtps.hpp"

namespace lagometer::probes {
namespace {

using Bytes = std::vector<uint8_t>;
constexpr size_t kMost = 15;

constexpr std::string_view kCycloneData =
    "525450530201011001108ec6269b1b7c6217250a090108009aa8076b99c181cd15055c000000100000000000000001030000"
    "00002b0000000001000040000000674c0100000000001a000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000007031c000000000000000103000000001c0000000000"
    "00002b00000024000000";
constexpr std::string_view kCycloneAcknowledgement =
    "52545053020101100110c1c841100e7a5fd0c8c90e010c0001108ec6269b1b7c6217250a0603180000000104000001030000"
    "00000b0000000000000002000000";
constexpr std::string_view kFastData =
    "525450530203010f010f7f01020095e7000000000e010c00010f7f010300dac00000000009010800bfa8076b579a3fc21505"
    "5c0000001000000001040000010300000000230000000001000040000000674c0100000000001d0000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000007011c000000"
    "01040000010300000000140000000000000023000000030000008001380001000000f31c0000000000000000000000000000"
    "7f000001bfa8076b17a645c22300000000000000181b0000000000000000000000000000";
constexpr std::string_view kFastAcknowledgement =
    "525450530203010f010f7f010300dac0000000000e010c00010f7f01020095e7000000000603180000000104000001030000"
    "00002400000000000000030000008001380001000000f51c00000000000000000000000000007f000001bfa8076bed201ac4"
    "030000000000000074010000000000000000000000000000";

Bytes from_hex(std::string_view text) {
  Bytes result;
  for (size_t at = 0; at < text.size(); at += 2)
    result.push_back(static_cast<uint8_t>(std::stoi(std::string(text.substr(at, 2)), nullptr, 16)));
  return result;
}

/// Parses the bytes cut into pieces of this size, as sendmsg() may be given them.
std::vector<KeyRecord> parsed(Bytes bytes, size_t piece = 1 << 20, Known known = Known::by_envelope) {
  std::vector<iovec> parts;
  for (size_t at = 0; at < bytes.size(); at += piece)
    parts.push_back({bytes.data() + at, std::min(piece, bytes.size() - at)});
  std::vector<KeyRecord> keys(kMost);
  keys.resize(parse_rtps(Scattered(parts, bytes.size()), keys, known));
  return keys;
}

void append(Bytes& to, uint64_t value, unsigned size, bool little) {
  for (unsigned place = 0; place < size; ++place)
    to.push_back(static_cast<uint8_t>(value >> (8 * (little ? place : size - 1 - place))));
}

Bytes header(uint8_t prefix) {
  Bytes result = {'R', 'T', 'P', 'S', 2, 3, 1, 16};
  result.insert(result.end(), 12, prefix);
  return result;
}

Bytes envelope(uint32_t stream, uint64_t sequence) {
  Bytes result = {0x67, 0x4C, 1, 0};
  append(result, stream, 4, true);
  append(result, sequence, 8, true);
  return result;
}

/// As a text has it: digits, behind the text's length.
Bytes text_envelope(uint32_t stream, uint64_t sequence) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  Bytes text = {40, 0, 0, 0};
  for (const uint8_t byte : envelope(stream, sequence)) {
    text.push_back(static_cast<uint8_t>(kDigits[byte >> 4U]));
    text.push_back(static_cast<uint8_t>(kDigits[byte & 0xFU]));
  }
  return text;
}

struct Fragment {
  uint32_t first = 1;
  uint16_t count = 1, bytes = 0;
  uint32_t sample_bytes = 0;
  Bytes inline_qos, payload;
};

void append_fragment(Bytes& datagram, const Fragment& fragment, int64_t number, bool little) {
  Bytes body;
  append(body, 0, 2, little);
  append(body, 28, 2, little);  // to the inline QoS
  body.insert(body.end(), {0, 0, 0, 0});
  body.insert(body.end(), {0, 0, 9, 3});
  append(body, static_cast<uint64_t>(number) >> 32U, 4, little);
  append(body, static_cast<uint64_t>(number) & 0xFFFFFFFFU, 4, little);
  append(body, fragment.first, 4, little);
  append(body, fragment.count, 2, little);
  append(body, fragment.bytes, 2, little);
  append(body, fragment.sample_bytes, 4, little);
  body.insert(body.end(), fragment.inline_qos.begin(), fragment.inline_qos.end());
  body.insert(body.end(), fragment.payload.begin(), fragment.payload.end());
  datagram.push_back(0x16);
  datagram.push_back(static_cast<uint8_t>((little ? 1 : 0) | (fragment.inline_qos.empty() ? 0 : 2)));
  append(datagram, body.size(), 2, little);
  datagram.insert(datagram.end(), body.begin(), body.end());
}

KeyKind kind_of_key(const KeyRecord& key) { return static_cast<KeyKind>(key.kind); }

TEST(Rtps, ReadsTheTimeOfSendingAndTheSizeOfThePayload) {
  for (const auto& [datagram, seconds, fraction] :
       {std::tuple{kCycloneData, 0x6b07a89a, 0xcd81c199}, std::tuple{kFastData, 0x6b07a8bf, 0xc23f9a57}}) {
    const auto keys = parsed(from_hex(datagram), 1 << 20, Known::by_time);
    ASSERT_FALSE(keys.empty());
    EXPECT_EQ(keys[0].stream, kStreamIsTime);
    const uint64_t ns = (uint64_t{fraction} * 1'000'000'000) >> 32U;
    EXPECT_EQ(keys[0].sequence, static_cast<uint64_t>(seconds) * 1'000'000'000 + ns);
    EXPECT_EQ(keys[0].payload_bytes, 72U);  // encapsulation, the length of the sequence, 64 bytes
  }
}

TEST(Rtps, KnowsNoTimeWhereNoneIsSaid) {
  Bytes datagram = header(1);
  append_fragment(datagram, {.bytes = 100, .sample_bytes = 250, .inline_qos = {}, .payload = Bytes(100)}, 3, true);
  const auto keys = parsed(datagram, 1 << 20, Known::by_time);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].stream, kStreamUnknown);
  EXPECT_EQ(keys[0].payload_bytes, 250U);
}

TEST(Rtps, ReadsWhatCycloneDdsSends) {
  const auto keys = parsed(from_hex(kCycloneData));
  ASSERT_EQ(keys.size(), 2U);  // data, and the heartbeat behind it
  EXPECT_EQ(kind_of_key(keys[0]), KeyKind::data);
  EXPECT_EQ(kind_of_key(keys[1]), KeyKind::heartbeat);
  EXPECT_EQ(keys[0].number, keys[1].number);
  EXPECT_EQ(keys[0].writer, keys[1].writer);
  EXPECT_EQ(keys[0].stream, 0U);
  EXPECT_EQ(keys[0].sequence, 26U);
  EXPECT_EQ(keys[1].stream, kStreamUnknown);
  const auto answers = parsed(from_hex(kCycloneAcknowledgement));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(kind_of_key(answers[0]), KeyKind::acknowledgement);
}

TEST(Rtps, ReadsWhatFastDdsSends) {
  const auto keys = parsed(from_hex(kFastData));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(kind_of_key(keys[0]), KeyKind::data);
  EXPECT_EQ(kind_of_key(keys[1]), KeyKind::heartbeat);
  EXPECT_EQ(keys[0].number, keys[1].number);
  EXPECT_EQ(keys[0].stream, 0U);
  EXPECT_EQ(keys[0].sequence, 29U);
  const auto answers = parsed(from_hex(kFastAcknowledgement));
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(kind_of_key(answers[0]), KeyKind::acknowledgement);
}

TEST(Rtps, FindsTheSameHoweverTheBytesLie) {
  for (const auto text : {kCycloneData, kFastData}) {
    const Bytes bytes = from_hex(text);
    const auto whole = parsed(bytes);
    for (const size_t piece : {1, 3, 7, 20, 64}) {
      const auto cut = parsed(bytes, piece);
      ASSERT_EQ(cut.size(), whole.size());
      for (size_t index = 0; index < cut.size(); ++index)
        EXPECT_EQ(std::memcmp(&cut[index], &whole[index], sizeof cut[index]), 0);
    }
  }
}

TEST(Rtps, CountsFragmentsInBothByteOrders) {
  for (const bool little : {true, false}) {
    Bytes datagram = header(7);
    Fragment first{
        .count = 1, .bytes = 100, .sample_bytes = 250, .inline_qos = {}, .payload = {0, 1, 0, 0, 9, 9, 9, 9}};
    const Bytes own = envelope(5, 1234567890123U);
    first.payload.insert(first.payload.end(), own.begin(), own.end());
    append_fragment(datagram, first, (int64_t{3} << 32U) + 4, little);
    Fragment rest{.first = 2, .count = 2, .bytes = 100, .sample_bytes = 250, .inline_qos = {}, .payload = own};
    append_fragment(datagram, rest, (int64_t{3} << 32U) + 4, little);
    const auto keys = parsed(datagram);
    ASSERT_EQ(keys.size(), 2U);
    EXPECT_EQ(keys[0].number, (int64_t{3} << 32U) + 4);
    EXPECT_EQ(keys[0].fragments_all, 3U);
    EXPECT_EQ(keys[0].stream, 5U);
    EXPECT_EQ(keys[0].sequence, 1234567890123U);
    EXPECT_EQ(keys[1].first_fragment, 2U);
    EXPECT_EQ(keys[1].fragments, 2U);
    EXPECT_EQ(keys[1].stream, kStreamUnknown);  // it only looks like an envelope
  }
}

TEST(Rtps, StepsOverInlineParameters) {
  Bytes parameters;
  append(parameters, 0x70, 2, true);
  append(parameters, 4, 2, true);
  append(parameters, 0x01, 4, true);
  append(parameters, 1, 2, true);  // the last one
  append(parameters, 0, 2, true);
  Bytes datagram = header(1);
  append_fragment(datagram,
                  {.count = 1, .bytes = 16, .sample_bytes = 16, .inline_qos = parameters, .payload = envelope(2, 9)}, 1,
                  true);
  const auto keys = parsed(datagram);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].stream, 2U);
  EXPECT_EQ(keys[0].sequence, 9U);
}

TEST(Rtps, ReadsTheDigitsOfATextsEnvelope) {
  for (const bool whole : {true, false}) {
    Bytes text = text_envelope(3, 0xABCDEF0123);
    if (!whole) text.pop_back();
    Bytes datagram = header(1);
    append_fragment(datagram, {.count = 1, .bytes = 64, .sample_bytes = 64, .inline_qos = {}, .payload = text}, 1,
                    true);
    const auto keys = parsed(datagram);
    ASSERT_EQ(keys.size(), 1U);
    EXPECT_EQ(keys[0].stream, whole ? 3U : kStreamUnknown);
    EXPECT_EQ(keys[0].sequence, whole ? 0xABCDEF0123U : 0U);
  }
}

TEST(Rtps, TakesNothingElseForRtps) {
  EXPECT_TRUE(parsed({}).empty());
  EXPECT_TRUE(parsed(envelope(1, 2)).empty());
  Bytes other = from_hex(kCycloneData);
  other[4] = 1;  // another major version
  EXPECT_TRUE(parsed(other).empty());
}

TEST(Rtps, NeverReadsBeyondWhatIsThere) {
  std::mt19937 draw(1);
  for (int round = 0; round < 20'000; ++round) {
    const Bytes whole = from_hex(round % 2 == 0 ? kCycloneData : kFastData);
    // On the heap and no larger than it says, so that the address sanitizer sees any byte beyond.
    Bytes damaged(whole.begin(), whole.begin() + static_cast<long>(draw() % (whole.size() + 1)));
    for (auto count = draw() % 6; count > 0 && !damaged.empty(); --count)
      damaged[draw() % damaged.size()] = static_cast<uint8_t>(draw());
    damaged.shrink_to_fit();
    for (const KeyRecord& key : parsed(damaged, 1 + draw() % 300)) {
      EXPECT_GE(key.kind, static_cast<uint8_t>(KeyKind::data));
      EXPECT_LE(key.kind, static_cast<uint8_t>(KeyKind::gap));
    }
  }
}

TEST(Rtps, LeavesOutWhatFindsNoRoom) {
  Bytes datagram = header(1);
  for (int index = 0; index < 40; ++index)
    append_fragment(datagram, {.count = 1, .bytes = 4, .sample_bytes = 4, .inline_qos = {}, .payload = {1, 2, 3, 4}},
                    index, true);
  EXPECT_EQ(parsed(datagram).size(), kMost);
}

}  // namespace
}  // namespace lagometer::probes
