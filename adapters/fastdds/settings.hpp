// SPDX-License-Identifier: Apache-2.0
// What a study can configure in Fast DDS: profile, options and network, checked and in one struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "binding.hpp"
#include "dds_security.hpp"

namespace lagometer::fastdds {

enum class Transport : uint8_t {
  kStandard,     // UDPv4 and shared memory, data sharing if both ends can: what the vendor ships
  kUdp,          // only UDPv4
  kShm,          // only the shared memory transport
  kTcp,          // only TCPv4
  kDataSharing,  // standard transports, data sharing required
};

/// What is delivered by function call between endpoints of one process.
enum class IntraProcess : uint8_t {
  kOff,           // nothing: they behave like endpoints of two processes
  kUserDataOnly,  // messages, not discovery
  kFull,          // everything: the vendor's default
};

/// Options of a context. A number of 0 means the vendor's default.
struct Settings {
  Transport transport = Transport::kStandard;
  IntraProcess intra_process = IntraProcess::kFull;
  bool intra_process_asked = false;  // set by an option; otherwise the vendor's file may set it
  bool synchronous = true;           // writers send on the caller's thread; the vendor's default
  bool publish_mode_asked = false;   // likewise
  bool tcp_nodelay = false;          // send small messages at once; by the vendor's default they wait
  bool discovery_server = false;     // participants are clients of a server instead of using multicast
  uint32_t socket_buffer_bytes = 0;
  uint32_t max_message_bytes = 0;
  uint32_t shm_segment_bytes = 0;
  uint32_t heartbeat_period_ms = 0;
  uint32_t deadline_ms = 0;
  std::string own_address;     // on the link to other hosts; empty: the vendor uses every interface
  bool loopback_only = false;  // the machine has more than a loopback with multicast: restrict it to 127.0.0.1
  uint32_t peers = 0;          // participants to look for on 127.0.0.1, if loopback_only
  std::string profiles_file;   // the vendor's XML file that kProfilesVariable names; empty: no file
  std::optional<dds_security::Files> security;

  /// The vendor's built-in transports are used, with nothing changed.
  [[nodiscard]] bool builtin_transports() const noexcept {
    return uses_standard_transports() && socket_buffer_bytes == 0 && max_message_bytes == 0 && shm_segment_bytes == 0 &&
           !loopback_only && own_address.empty();
  }
  [[nodiscard]] bool uses_standard_transports() const noexcept {
    return transport == Transport::kStandard || transport == Transport::kDataSharing;
  }
  [[nodiscard]] bool uses_udp() const noexcept { return transport == Transport::kUdp || uses_standard_transports(); }
  [[nodiscard]] bool uses_shm() const noexcept { return transport == Transport::kShm || uses_standard_transports(); }
  [[nodiscard]] bool uses_tcp() const noexcept { return transport == Transport::kTcp; }
  [[nodiscard]] bool uses_sockets() const noexcept { return uses_udp() || uses_tcp(); }
};

/// The environment variable with the path of the library's file of profiles.
inline constexpr const char* kProfilesVariable = "FASTRTPS_DEFAULT_PROFILES_FILE";
/// The only address to which this adapter binds sockets explicitly.
inline constexpr const char* kLoopback = "127.0.0.1";
/// The largest message that Fast DDS accepts for UDP and TCP, in bytes; also its default.
inline constexpr uint32_t kSocketMessageBytesMax = 65500;
/// Size of the vendor's shared memory transport, in bytes.
inline constexpr uint32_t kShmSegmentBytesDefault = 512 * 1024;
/// Ports per address that the vendor tries for a peer without a port.
inline constexpr uint32_t kInitialPeersDefault = 4;
/// Socket buffers of the profile "matched", in bytes, before the kernel's limit.
inline constexpr uint32_t kMatchedSocketBufferBytes = 4 * 1024 * 1024;

/// In every profile: participants announce themselves more often than the vendor's 5 times in 500 ms, within the same
/// time. If two start together, one misses the other's first announcement, and a trial would wait for the next.
inline constexpr uint32_t kAnnouncements = 25;
inline constexpr uint32_t kAnnouncementsDefault = 5;
inline constexpr uint32_t kAnnouncementPeriodNs = 20'000'000;
inline constexpr uint32_t kAnnouncementPeriodNsDefault = 100'000'000;

/// Over TCP, announcements repeat more often than the vendor's every 3 s: an announcement before the receiver's port is
/// requested is dropped, and everybody waits for the next one.
inline constexpr uint32_t kTcpLaterAnnouncementPeriodS = 1;
inline constexpr uint32_t kLaterAnnouncementPeriodSDefault = 3;

/// Where the vendor's tool `fastdds discovery -i 0 -p 11811` listens by default, on the loopback.
inline constexpr uint16_t kDiscoveryServerPort = 11811;

/// Throws Error(LAGOMETER_INVALID) with this message if something is wrong.
inline void refuse(bool wrong, const std::string& message) {
  if (wrong) throw Error(LAGOMETER_INVALID, "fastdds: " + message);
}

/// Reads profile, options, network and security of a context. Throws Error(LAGOMETER_INVALID) that names the key.
Settings parse_settings(const lagometer_context_config& config);

}  // namespace lagometer::fastdds
