// SPDX-License-Identifier: Apache-2.0
// What this adapter sets in Cyclone DDS, beside the vendor's default, and as the XML that a user would paste.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lagometer::cyclonedds {

/// One setting that differs from the vendor's default, or may.
struct Settings {
  std::optional<uint64_t> max_message_bytes;
  std::optional<uint64_t> fragment_bytes;
  std::optional<uint64_t> socket_receive_buffer_bytes;
  std::optional<std::string> participant_index;

  /// From the profile ("default", "matched") and the options of the plan, which win. Throws lagometer::Error.
  static Settings from(std::string_view profile, std::string_view options);
  [[nodiscard]] bool any() const;
  /// The configuration document, "" if nothing is set.
  [[nodiscard]] std::string xml() const;
  /// {"settings": {key: {"value", "default"}}, "paste": [{"file", "text"}]}
  [[nodiscard]] nlohmann::json describe() const;
};

}  // namespace lagometer::cyclonedds
