// SPDX-License-Identifier: Apache-2.0
// A study's settings, checked: the sidecar's options, and how each profile changes them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "floor.hpp"

namespace lagometer::mqtt {

/// Where the sidecar's daemon listens, unless it serves several hosts: not at 1883, where the distribution's broker may
/// be running.
inline constexpr const char* kBrokerHost = "127.0.0.1";
inline constexpr int kBrokerPort = 18830;
/// The longest interval allowed, so that no ping is sent while a trial measures.
inline constexpr int kKeepalive_s = 65535;

inline constexpr floor::Abilities abilities{
    .adapter = "mqtt", .transport = "tcp", .reliable = true, .keep_all = false, .payload_bytes_max = 268'369'916};

struct Settings {
  /// Throws lagometer::Error for an option or a profile that does not exist.
  static Settings from(std::string_view profile, std::string_view options);
  /// MQTT's quality of service for a reliability.
  [[nodiscard]] int quality(bool reliable) const noexcept { return reliable ? reliable_qos : 0; }
  /// The result of describe() for a context.
  [[nodiscard]] nlohmann::json describe() const;

  bool tcp_nodelay = false;
  int reliable_qos = 1;
  int max_inflight_messages = 20;
  int max_queued_messages = 1000;  // the broker's
  int socket_buffer_bytes = 0;     // 0: the kernel's
  std::string broker_host = kBrokerHost;
};

}  // namespace lagometer::mqtt
