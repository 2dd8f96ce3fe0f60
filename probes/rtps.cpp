// SPDX-License-Identifier: Apache-2.0
#include "rtps.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace lagometer::probes {
namespace {

constexpr uint64_t kHeaderSize = 20;
constexpr uint64_t kSubmessageHeaderSize = 4;
constexpr uint64_t kEnvelopeSearchBytes = 256;
constexpr size_t kEnvelopeSize = 16;
constexpr uint8_t kLittleEndian = 0x01, kInlineQos = 0x02, kInvalidTime = 0x02;
enum Submessage : uint8_t {
  kPad = 0x01,
  kAckNack = 0x06,
  kHeartbeat = 0x07,
  kGap = 0x08,
  kInfoTimestamp = 0x09,
  kInfoSource = 0x0c,
  kData = 0x15,
  kDataFragment = 0x16
};

/// One submessage: reads its numbers in its byte order, and never beyond its end.
class Body {
 public:
  Body(const Scattered& datagram, uint64_t begin, uint64_t end, bool little) noexcept
      : datagram_(datagram), begin_(begin), end_(end), little_(little) {}

  [[nodiscard]] uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bool bytes(uint64_t at, void* to, size_t size) const noexcept {
    return at <= end_ - begin_ && size <= end_ - begin_ - at && datagram_.read(begin_ + at, to, size);
  }
  [[nodiscard]] bool number(uint64_t at, uint32_t& value) const noexcept {
    std::array<uint8_t, 4> raw;
    if (!bytes(at, raw.data(), raw.size())) return false;
    if (!little_) std::reverse(raw.begin(), raw.end());
    std::memcpy(&value, raw.data(), raw.size());
    return true;
  }
  [[nodiscard]] bool number(uint64_t at, uint16_t& value) const noexcept {
    std::array<uint8_t, 2> raw;
    if (!bytes(at, raw.data(), raw.size())) return false;
    if (!little_) std::swap(raw[0], raw[1]);
    std::memcpy(&value, raw.data(), raw.size());
    return true;
  }
  [[nodiscard]] bool sequence(uint64_t at, int64_t& value) const noexcept {
    uint32_t high = 0, low = 0;
    if (!number(at, high) || !number(at + 4, low)) return false;
    value = static_cast<int64_t>((uint64_t{high} << 32U) | low);
    return true;
  }

 private:
  const Scattered& datagram_;
  uint64_t begin_, end_;
  bool little_;
};

/// Where the payload begins: after the parameters, each of which contains its length.
bool skip_inline_qos(const Body& body, uint64_t& at) noexcept {
  constexpr uint16_t kSentinel = 1;
  for (;;) {
    uint16_t name = 0, size = 0;
    if (!body.number(at, name) || !body.number(at + 2, size)) return false;
    at += 4;
    if (name == kSentinel) return true;
    at += size;
  }
}

/// What earlier submessages say about later ones.
struct Context {
  std::array<uint8_t, 12> prefix;
  Known known;
  int64_t time_ns;  // 0: unknown
};

/// From INFO_TS: seconds and 2^-32 s since 1970, in nanoseconds.
int64_t parse_time(const Body& body, uint8_t flags) noexcept {
  uint32_t seconds = 0, fraction = 0;
  if ((flags & kInvalidTime) != 0 || !body.number(0, seconds) || !body.number(4, fraction)) return 0;
  constexpr uint64_t kNs = 1'000'000'000;
  return static_cast<int64_t>(seconds * kNs + ((fraction * kNs) >> 32U));
}

bool parse_data(const Body& body, uint8_t flags, bool fragmented, const Scattered& datagram, const Context& context,
                KeyRecord& key) noexcept {
  uint16_t to_inline_qos = 0;
  if (!body.number(2, to_inline_qos) || !body.bytes(8, key.writer.data(), key.writer.size()) ||
      !body.sequence(12, key.number)) {
    return false;
  }
  uint64_t at = uint64_t{4} + to_inline_qos;
  bool has_begin = true;
  if (fragmented) {
    uint16_t count = 0, fragment_bytes = 0;
    uint32_t sample_bytes = 0;
    if (!body.number(20, key.first_fragment) || !body.number(24, count) || !body.number(26, fragment_bytes) ||
        !body.number(28, sample_bytes) || fragment_bytes == 0 || key.first_fragment == 0) {
      return false;
    }
    key.fragments = count;
    key.fragments_all = sample_bytes / fragment_bytes + (sample_bytes % fragment_bytes != 0 ? 1 : 0);
    key.payload_bytes = sample_bytes;
    has_begin = key.first_fragment == 1;
  }
  if (context.known == Known::by_time && context.time_ns != 0) {
    key.stream = kStreamIsTime;
    key.sequence = static_cast<uint64_t>(context.time_ns);
  }
  if ((flags & kInlineQos) != 0 && !skip_inline_qos(body, at)) return true;  // known, except for its payload
  const uint64_t size = body.end() - body.begin();
  if (!fragmented && at <= size) key.payload_bytes = static_cast<uint32_t>(size - at);
  if (has_begin && context.known == Known::by_envelope) find_envelope(datagram, body.begin() + at, body.end(), key);
  return true;
}

/// Reads an envelope in a text: its bytes, two hexadecimal digits each; returns false if there are other characters.
bool read_digits(const uint8_t* digits, std::span<uint8_t> bytes) noexcept {
  for (uint8_t& byte : bytes) {
    unsigned value = 0;
    for (int place = 0; place < 2; ++place, ++digits) {
      if (*digits >= '0' && *digits <= '9')
        value = value * 16 + (*digits - unsigned{'0'});
      else if (*digits >= 'a' && *digits <= 'f')
        value = value * 16 + (*digits - unsigned{'a'} + 10);
      else
        return false;
    }
    byte = static_cast<uint8_t>(value);
  }
  return true;
}

/// Returns false if it contains nothing to keep, or is truncated.
bool parse_submessage(const Body& body, uint8_t kind, uint8_t flags, const Scattered& datagram, const Context& context,
                      KeyRecord& key) noexcept {
  switch (kind) {
    case kData:
    case kDataFragment:
      key.kind = static_cast<uint8_t>(kind == kData ? KeyKind::data : KeyKind::data_fragment);
      return parse_data(body, flags, kind == kDataFragment, datagram, context, key);
    case kHeartbeat:
      key.kind = static_cast<uint8_t>(KeyKind::heartbeat);
      return body.bytes(4, key.writer.data(), key.writer.size()) && body.sequence(16, key.number);
    case kAckNack:
      key.kind = static_cast<uint8_t>(KeyKind::acknowledgement);
      return body.bytes(4, key.writer.data(), key.writer.size()) && body.sequence(8, key.number);
    case kGap:
      key.kind = static_cast<uint8_t>(KeyKind::gap);
      return body.bytes(4, key.writer.data(), key.writer.size()) && body.sequence(8, key.number);
    default:
      return false;
  }
}

}  // namespace

bool Scattered::read(uint64_t offset, void* to, size_t size) const noexcept {
  if (offset > bytes_ || size > bytes_ - offset) return false;
  auto* next = static_cast<uint8_t*>(to);
  for (const iovec& part : parts_) {
    if (size == 0) break;
    if (offset >= part.iov_len) {
      offset -= part.iov_len;
      continue;
    }
    const size_t here = std::min<size_t>(size, part.iov_len - offset);
    std::memcpy(next, static_cast<const uint8_t*>(part.iov_base) + offset, here);
    next += here;
    size -= here;
    offset = 0;
  }
  return size == 0;
}

bool is_rtps(const Scattered& datagram) noexcept {
  std::array<char, 5> head;
  return datagram.bytes() >= kHeaderSize && datagram.read(0, head.data(), head.size()) &&
         std::memcmp(head.data(), "RTPS\2", head.size()) == 0;
}

size_t parse_rtps(const Scattered& datagram, std::span<KeyRecord> keys, Known known) noexcept {
  Context context{.prefix = {}, .known = known, .time_ns = 0};
  if (!is_rtps(datagram) || !datagram.read(8, context.prefix.data(), context.prefix.size())) return 0;
  size_t found = 0;
  uint64_t at = kHeaderSize;
  while (found < keys.size()) {
    std::array<uint8_t, kSubmessageHeaderSize> head;
    if (!datagram.read(at, head.data(), head.size())) break;
    const uint8_t kind = head[0], flags = head[1];
    const bool little = (flags & kLittleEndian) != 0;
    const unsigned low = head[little ? 2 : 3], high = head[little ? 3 : 2];
    uint64_t size = (high << 8U) | low;
    const uint64_t begin = at + kSubmessageHeaderSize, left = datagram.bytes() - begin;
    const bool is_last = size == 0 && kind != kPad && kind != kInfoTimestamp;
    if (is_last) size = left;
    if (size > left) break;
    const Body body(datagram, begin, begin + size, little);
    KeyRecord key{};
    key.prefix = context.prefix;
    key.stream = kStreamUnknown;
    if (kind == kInfoSource) {
      if (!body.bytes(8, context.prefix.data(), context.prefix.size())) break;
    } else if (kind == kInfoTimestamp) {
      context.time_ns = parse_time(body, flags);
    } else if (parse_submessage(body, kind, flags, datagram, context, key)) {
      keys[found++] = key;
    }
    at = begin + size;
    if (is_last) break;
  }
  return found;
}

bool find_envelope(const Scattered& bytes, uint64_t offset, uint64_t end, KeyRecord& key, uint64_t* found_at) noexcept {
  std::array<uint8_t, kEnvelopeSearchBytes> copy;
  end = std::min(end, bytes.bytes());
  if (offset >= end) return false;
  const size_t size = std::min<uint64_t>(copy.size(), end - offset);
  if (size < kEnvelopeSize || !bytes.read(offset, copy.data(), size)) return false;
  constexpr std::array<uint8_t, 4> kHead = {0x67, 0x4C, 1, 0};  // magic, version, kind: data
  constexpr std::string_view kDigits = "674c0100";
  const auto fill = [&](const uint8_t* envelope, const uint8_t* found) {
    if (found_at != nullptr) *found_at = offset + static_cast<uint64_t>(found - copy.data());
    std::memcpy(&key.stream, envelope + 4, sizeof key.stream);
    std::memcpy(&key.sequence, envelope + 8, sizeof key.sequence);
    return true;
  };
  // Any number of bytes may precede it, such as a frame's length or a topic.
  const auto* const last = copy.data() + size;
  const void* const found = memmem(copy.data(), size, kHead.data(), kHead.size());
  if (const auto* const envelope = static_cast<const uint8_t*>(found);
      envelope != nullptr && last - envelope >= ptrdiff_t{kEnvelopeSize}) {
    return fill(envelope, envelope);
  }
  std::array<uint8_t, kEnvelopeSize> text;
  const void* const written = memmem(copy.data(), size, kDigits.data(), kDigits.size());
  const auto* const digits = static_cast<const uint8_t*>(written);
  return digits != nullptr && last - digits >= ptrdiff_t{2 * kEnvelopeSize} && read_digits(digits, text) &&
         fill(text.data(), digits);
}

}  // namespace lagometer::probes
