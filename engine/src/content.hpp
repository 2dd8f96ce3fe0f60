// SPDX-License-Identifier: Apache-2.0
// What payloads are filled with: some middleware compresses, and zeros are not what a robot sends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagometer/adapter.h"

namespace lagometer::engine {

enum class ContentKind { any, zeros, random, recorded };

struct ContentPlan {
  ContentKind kind = ContentKind::any;
  uint64_t seed = 0;   ///< random
  std::string path;    ///< recorded: a file
  uint32_t crc32 = 0;  ///< recorded: the file's checksum

  bool operator==(const ContentPlan&) const = default;
};

/// Bytes to fill payloads from, created once before anything is sent.
class Content {
 public:
  /// `text`: every byte becomes a printable character (as_character), so that payloads stay text. Throws
  /// std::runtime_error if the file can't be read, is not the plan's file, or would have to be text.
  explicit Content(const ContentPlan& plan, bool text = false);

  /// Fills the whole message, before its envelope and marks are written. `sequence` determines where in the bytes to
  /// start.
  void fill(lagometer_message& message, uint64_t sequence) const noexcept;

 private:
  std::vector<uint8_t> bytes_;  // empty: the buffer is left as it is
};

}  // namespace lagometer::engine
