// SPDX-License-Identifier: Apache-2.0
// What a study can configure in roscpp: the profile and the options of adapter.json.
#pragma once

#include <ros/transport_hints.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "binding.hpp"

namespace lagometer::ros1 {

/// Which of roscpp's two transports subscribers request.
enum class Transport : uint8_t { kByReliability, kTcp, kUdp };

struct Settings {
  Transport transport = Transport::kByReliability;
  bool tcp_no_delay = false;
  uint32_t max_datagram_bytes = 1500;  // of UDPROS, including its header of 8 bytes
  bool by_pointer = true;              // what publish() gets: a shared pointer, or the message itself

  /// From the profile ("default", "matched") and the plan's options, which take precedence. Throws lagometer::Error.
  static Settings from(std::string_view profile, std::string_view options);

  /// Whether endpoints of this reliability use UDPROS. Throws lagometer::Error if the transport can't be reliable.
  [[nodiscard]] bool uses_udp(bool reliable) const;
  /// What a subscriber requests from its publishers.
  [[nodiscard]] ros::TransportHints hints(bool udp) const;
  /// The same as a line of C++.
  [[nodiscard]] std::string hints_code(bool udp) const;
  /// The largest payload whose blocks UDPROS can number.
  [[nodiscard]] uint64_t udp_payload_bytes_max() const;
  /// The result of describe() for a context.
  [[nodiscard]] nlohmann::json describe() const;
};

/// The quality of service in roscpp's terms. Throws lagometer::Error for policies that roscpp does not have.
struct Quality {
  explicit Quality(const lagometer_qos* wanted);
  bool reliable = true;
  uint32_t queue_size = 16;  // of publisher or subscriber; 0: no limit
};

/// {key: {"value", "default"}}; a default of null: roscpp has no default, an application must choose.
nlohmann::json setting(const nlohmann::json& value, const nlohmann::json& usual);

}  // namespace lagometer::ros1
