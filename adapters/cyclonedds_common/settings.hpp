// SPDX-License-Identifier: Apache-2.0
// What this adapter sets in Cyclone DDS, the vendor's defaults, and the same as XML that a user can paste.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lagometer::cyclonedds {

/// Settings that differ from the vendor's default, or may.
struct Settings {
  uint32_t domain = 0;
  std::optional<uint64_t> max_message_bytes;
  std::optional<uint64_t> fragment_bytes;
  std::optional<uint64_t> socket_receive_buffer_bytes;
  std::optional<uint64_t> socket_send_buffer_bytes;
  std::optional<std::string> participant_index;
  std::optional<std::string> own_address;  // on the link to other hosts; otherwise the vendor chooses an interface
  bool asynchronous_delivery = false;
  bool in_shared_memory = false;

  /// From the profile ("default", "matched") and the plan's options, which take precedence. `network`: the plan's
  /// network. Throws lagometer::Error.
  static Settings from(std::string_view profile, std::string_view options, uint32_t domain,
                       std::string_view network = {});
  [[nodiscard]] bool any() const;
  /// The configuration document, "" if nothing is set.
  [[nodiscard]] std::string xml() const;
  /// {"settings": {key: {"value", "default"}}, "paste": [{"file", "text"}], "transport"}
  [[nodiscard]] nlohmann::json describe() const;

 private:
  void apply(const std::string& key, const nlohmann::json& value);
};

}  // namespace lagometer::cyclonedds
