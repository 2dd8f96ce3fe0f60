// SPDX-License-Identifier: Apache-2.0
// What is written down once, with texts: what a program creates, and what was found of its libraries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "journal.hpp"

namespace lagometer::probes {

constexpr size_t kTextMax = 256;

/// What is declared, as records: the GUID, then the name and the type of the topic.
class Declaration {
 public:
  void guid(std::span<const uint8_t, 16> value) noexcept {
    KeyRecord& key = records_[used_++];
    key = {};
    key.kind = static_cast<uint8_t>(KeyKind::endpoint);
    key.stream = kStreamUnknown;
    std::memcpy(key.prefix.data(), value.data(), key.prefix.size());
    std::memcpy(key.writer.data(), value.data() + key.prefix.size(), key.writer.size());
  }

  void text(uint8_t number, const char* text, size_t size) noexcept {
    size = size < kTextMax ? size : kTextMax;
    while (size > 0 && used_ < records_.size()) {
      TextRecord piece{};
      piece.text = number;
      piece.kind = static_cast<uint8_t>(KeyKind::text);
      piece.bytes = static_cast<uint8_t>(size < piece.characters.size() ? size : piece.characters.size());
      std::memcpy(piece.characters.data(), text, piece.bytes);
      std::memcpy(&records_[used_++], &piece, sizeof piece);
      text += piece.bytes;
      size -= piece.bytes;
    }
  }

  void write(const Entered& entered, Call call, uint64_t object, uint64_t topic) const noexcept {
    CallRecord record{};
    record.descriptor = -1;
    record.object = object;
    record.connection = topic;
    entered.write(call, record, {records_.data(), used_});
  }

 private:
  std::array<KeyRecord, 15> records_{};  // two texts of 256 characters and a GUID
  size_t used_ = 0;
};

}  // namespace lagometer::probes
