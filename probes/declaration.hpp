// SPDX-License-Identifier: Apache-2.0
// What is recorded once, with texts: what a program creates, and what was found out about its libraries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

#include "journal.hpp"

namespace lagometer::probes {

constexpr size_t kTextMax = 256;

/// The effective quality of service of a writer or reader; values are the middleware's own constants.
struct Qos {
  bool is_reliable;
  bool keeps_all;
  int32_t depth;
  uint32_t durability;
};

/// A declaration as records: the GUID, then the name and the type of the topic, and the QoS.
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

  /// Text 2: "reliable keep_last 10 volatile".
  void qos(const Qos& qos) noexcept {
    constexpr std::array<const char*, 4> kDurabilities{"volatile", "transient_local", "transient", "persistent"};
    if (qos.durability >= kDurabilities.size()) return;
    std::array<char, 64> words{};
    const int size =
        std::snprintf(words.data(), words.size(), "%s %s %d %s", qos.is_reliable ? "reliable" : "best_effort",
                      qos.keeps_all ? "keep_all" : "keep_last", qos.depth, kDurabilities[qos.durability]);
    if (size > 0) text(2, words.data(), static_cast<size_t>(size));
  }

  void write(const Entered& entered, Call call, uint64_t object, uint64_t topic) const noexcept {
    CallRecord record{};
    record.descriptor = -1;
    record.object = object;
    record.connection = topic;
    entered.write(call, record, {records_.data(), used_});
  }

 private:
  std::array<KeyRecord, 15> records_{};  // two texts of 256 characters, the QoS and a GUID
  size_t used_ = 0;
};

}  // namespace lagometer::probes
