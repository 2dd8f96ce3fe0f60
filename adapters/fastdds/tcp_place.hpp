// SPDX-License-Identifier: Apache-2.0
// How the participants of a trial find each other over TCP, which has no multicast to ask with: each one listens on a
// port of its own on the loopback, and connects to those that came before it. Who came before is kept in the trial's
// runtime directory, as a user would write it into each participant's list of initial peers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lagometer::fastdds {

/// One end: the port that it listens on, and the logical port, in the vendor's sense, of its discovery.
struct TcpEnd {
  uint16_t port;
  uint16_t logical_port;
};

/// The place of one participant, from before it is made until after it is gone.
class TcpPlace {
 public:
  /// Throws Error(LAGOMETER_INVALID) if a domain holds no more, Error(LAGOMETER_NO_RESOURCE) without a port or a file.
  TcpPlace(std::string_view runtime_directory, uint32_t domain);
  ~TcpPlace();
  TcpPlace(const TcpPlace&) = delete;
  TcpPlace& operator=(const TcpPlace&) = delete;

  /// The number that the participant must have, since the logical port follows from it.
  [[nodiscard]] uint32_t participant() const noexcept { return participant_; }
  [[nodiscard]] const TcpEnd& own() const noexcept { return own_; }
  [[nodiscard]] const std::vector<TcpEnd>& peers() const noexcept { return peers_; }
  /// Throws Error(LAGOMETER_NO_RESOURCE) if nobody listens on the port, as Fast DDS only logs when it can't.
  void require_listening() const;

 private:
  void enter(uint32_t domain);
  void leave();

  std::string file_;
  uint32_t participant_ = 0;
  TcpEnd own_{};
  std::vector<TcpEnd> peers_;
};

}  // namespace lagometer::fastdds
