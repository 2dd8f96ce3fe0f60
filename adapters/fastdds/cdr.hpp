// SPDX-License-Identifier: Apache-2.0
// CDR version 1 as far as the payload types need it. Numbers are aligned to their size, counted from the end of the
// encapsulation header. A text is its length including the zero at its end, then the text and the zero. A sequence is
// its length, then its elements. A message writes itself to a CdrOutput; a first pass, to a CdrCount, gives the length.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lagometer::fastdds {

static_assert(std::endian::native == std::endian::little, "what is sent is little-endian");

constexpr uint32_t kEncapsulationBytes = 4;  // identifier and options, before everything else

/// Counts the bytes that would be written.
class CdrCount {
 public:
  template <typename Number>
  void number(Number) noexcept {
    align(sizeof(Number));
    bytes_ += sizeof(Number);
  }
  void text(std::string_view value) noexcept {
    number(uint32_t{});
    bytes_ += static_cast<uint32_t>(value.size()) + 1;
  }
  void octets(const std::vector<uint8_t>& value) noexcept {
    number(uint32_t{});
    bytes_ += static_cast<uint32_t>(value.size());
  }
  /// Contiguous 8-byte numbers.
  void doubles(const void*, uint32_t bytes) noexcept {
    align(sizeof(double));
    bytes_ += bytes;
  }
  [[nodiscard]] uint32_t bytes() const noexcept { return bytes_; }

 private:
  void align(uint32_t bytes) noexcept { bytes_ = (bytes_ + bytes - 1) / bytes * bytes; }
  uint32_t bytes_ = 0;
};

/// Writes to memory that has room for it.
class CdrOutput {
 public:
  explicit CdrOutput(uint8_t* begin) noexcept : begin_(begin), at_(begin) {}
  template <typename Number>
  void number(Number value) noexcept {
    static_assert(std::is_arithmetic_v<Number>);
    align(sizeof value);
    copy(&value, sizeof value);
  }
  void text(std::string_view value) noexcept {
    number(static_cast<uint32_t>(value.size()) + 1);
    copy(value.data(), value.size());
    *at_++ = 0;
  }
  void octets(const std::vector<uint8_t>& value) noexcept {
    number(static_cast<uint32_t>(value.size()));
    copy(value.data(), value.size());
  }
  void doubles(const void* values, uint32_t bytes) noexcept {
    align(sizeof(double));
    copy(values, bytes);
  }

 private:
  void align(uint32_t bytes) noexcept {
    while (static_cast<uint64_t>(at_ - begin_) % bytes != 0) *at_++ = 0;
  }
  void copy(const void* from, uint64_t bytes) noexcept {
    if (bytes > 0) std::memcpy(at_, from, bytes);
    at_ += bytes;
  }
  uint8_t* begin_;
  uint8_t* at_;
};

/// Reads data that anybody may have sent: past its end, or with an impossible length, everything returns false from
/// then on.
class CdrInput {
 public:
  CdrInput(const uint8_t* begin, uint32_t bytes, bool little_endian) noexcept
      : begin_(begin), at_(begin), end_(begin + bytes), swaps_(!little_endian) {}

  template <typename Number>
  bool number(Number& value) noexcept {
    static_assert(std::is_arithmetic_v<Number>);
    if (!align(sizeof value) || !has(sizeof value)) return false;
    std::memcpy(&value, at_, sizeof value);
    if (swaps_) swap(&value, sizeof value);
    at_ += sizeof value;
    return true;
  }
  bool text(std::string& value) {
    uint32_t length = 0;
    if (!number(length) || !has(length)) return fail();
    const auto* characters = reinterpret_cast<const char*>(at_);
    if (length > 0 && characters[length - 1] != '\0') return fail();
    value.assign(characters, length > 0 ? length - 1 : 0);
    at_ += length;
    return true;
  }
  bool octets(std::vector<uint8_t>& value) {
    uint32_t length = 0;
    if (!number(length) || !has(length)) return fail();
    value.assign(at_, at_ + length);  // keeps its memory from one message to the next
    at_ += length;
    return true;
  }
  bool doubles(void* values, uint32_t bytes) noexcept {
    if (!align(sizeof(double)) || !has(bytes)) return false;
    std::memcpy(values, at_, bytes);
    at_ += bytes;
    for (uint32_t at = 0; swaps_ && at < bytes; at += sizeof(double)) {
      swap(static_cast<uint8_t*>(values) + at, sizeof(double));
    }
    return true;
  }
  /// The number of elements of a sequence, each at least `bytes_min` long.
  bool count(uint32_t& elements, uint32_t bytes_min) noexcept {
    return number(elements) && (has(uint64_t{elements} * bytes_min) || fail());
  }

 private:
  bool fail() noexcept {
    at_ = end_;
    return false;
  }
  [[nodiscard]] bool has(uint64_t bytes) const noexcept { return bytes <= static_cast<uint64_t>(end_ - at_); }
  bool align(uint32_t bytes) noexcept {
    const uint64_t over = static_cast<uint64_t>(at_ - begin_) % bytes;
    const uint64_t gap = over == 0 ? 0 : bytes - over;
    if (!has(gap)) return fail();
    at_ += gap;
    return true;
  }
  static void swap(void* value, uint32_t bytes) noexcept {
    auto* begin = static_cast<uint8_t*>(value);
    std::reverse(begin, begin + bytes);
  }
  const uint8_t* begin_;
  const uint8_t* at_;
  const uint8_t* end_;
  bool swaps_;
};

}  // namespace lagometer::fastdds
