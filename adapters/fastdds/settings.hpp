// SPDX-License-Identifier: Apache-2.0
// What a study may choose of Fast DDS: profile, options and network, checked and in one struct.
#pragma once

#include <cstdint>
#include <string>

#include "binding.hpp"

namespace lagometer::fastdds {

enum class Transport : uint8_t {
  kStandard,     // UDPv4 and shared memory, data sharing where both ends can: what the vendor ships
  kUdp,          // UDPv4 alone
  kShm,          // the shared memory transport alone
  kDataSharing,  // standard transports, data sharing demanded
};

/// Options of a context. A number that is 0 stands for the vendor's default.
struct Settings {
  Transport transport = Transport::kStandard;
  bool synchronous = true;  // writers send on the caller's thread; the vendor's default
  uint32_t socket_buffer_bytes = 0;
  uint32_t max_message_bytes = 0;
  uint32_t shm_segment_bytes = 0;
  uint32_t heartbeat_period_ms = 0;
  bool loopback_only = false;  // the machine has more than a loopback with multicast: stay on 127.0.0.1 by hand
  uint32_t peers = 0;          // participants to look for on 127.0.0.1, if loopback_only

  /// The vendor's built-in transports serve; nothing about them was chosen.
  [[nodiscard]] bool builtin_transports() const noexcept {
    const bool standard = transport == Transport::kStandard || transport == Transport::kDataSharing;
    return standard && socket_buffer_bytes == 0 && max_message_bytes == 0 && shm_segment_bytes == 0 && !loopback_only;
  }
  [[nodiscard]] bool uses_udp() const noexcept { return transport != Transport::kShm; }
  [[nodiscard]] bool uses_shm() const noexcept { return transport != Transport::kUdp; }
};

/// The largest datagram that Fast DDS accepts for UDP, in bytes; also its default.
inline constexpr uint32_t kUdpMessageBytesMax = 65500;
/// Room of the vendor's shared memory transport, in bytes.
inline constexpr uint32_t kShmSegmentBytesDefault = 512 * 1024;
/// Ports per address that the vendor tries for a peer that is named without a port.
inline constexpr uint32_t kInitialPeersDefault = 4;
/// Socket buffers of the profile "matched", in bytes, before the kernel's limit.
inline constexpr uint32_t kMatchedSocketBufferBytes = 4 * 1024 * 1024;

/// In every profile: participants announce themselves more often than the vendor's 5 times in 500 ms, in the same time.
/// Of two that start together one misses the other's first word, and a trial would wait for the next.
inline constexpr uint32_t kAnnouncements = 25;
inline constexpr uint32_t kAnnouncementsDefault = 5;
inline constexpr uint32_t kAnnouncementPeriodNs = 20'000'000;
inline constexpr uint32_t kAnnouncementPeriodNsDefault = 100'000'000;

/// Throws Error(LAGOMETER_INVALID) with this message if something is wrong.
inline void refuse(bool wrong, const std::string& message) {
  if (wrong) throw Error(LAGOMETER_INVALID, "fastdds: " + message);
}

/// Reads profile, options, network and security of a context. Throws Error(LAGOMETER_INVALID) that names the key.
Settings parse_settings(const lagometer_context_config& config);

}  // namespace lagometer::fastdds
