// SPDX-License-Identifier: Apache-2.0
// How the participants of a trial find each other over TCP, which has no multicast for discovery: each one listens on
// its own port on the loopback, and connects to those that came before it. The trial's runtime directory records them,
// as a user would write them into each participant's list of initial peers. They start one after the other, so that all
// listed peers are already listening, and leave in reverse order (see `await_turn_to_leave`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lagometer::fastdds {

/// One end: the port that it listens on, the logical port (in the vendor's sense) for all of its traffic, and its
/// participant, as the text of a GUID prefix (empty until it is known).
struct TcpEnd {
  uint16_t port;
  uint16_t logical_port;
  std::string participant;
};

class TcpList;

/// The place of one participant, from before it is created until after it is gone.
class TcpPlace {
 public:
  class Turn;

  /// Takes a number. Throws Error(LAGOMETER_INVALID) if a domain can't hold more, Error(LAGOMETER_NO_RESOURCE) without
  /// a file.
  TcpPlace(std::string_view runtime_directory, uint32_t domain);
  ~TcpPlace();
  TcpPlace(const TcpPlace&) = delete;
  TcpPlace& operator=(const TcpPlace&) = delete;

  /// The number that the participant must have, because its logical port and its GUID depend on it.
  [[nodiscard]] uint32_t participant() const noexcept { return participant_; }
  /// Where it listens; ports are 0 before its turn.
  [[nodiscard]] const TcpEnd& own() const noexcept { return own_; }
  /// The participants that came before it and were present at its turn.
  [[nodiscard]] const std::vector<TcpEnd>& peers() const noexcept { return peers_; }

  /// The peers that are still present and must be matched, as participants. Throws Error(LAGOMETER_NO_RESOURCE).
  [[nodiscard]] std::vector<std::string> peers_to_meet() const;

  /// Call this once the participant's endpoints are gone. Returns when all others have got that far, and those that
  /// came later are gone; or after a bounded time, since others need not leave. Fast DDS 2.9 frees its receive buffer
  /// while a second connection still delivers to it, so nobody may close while several others send. And if a
  /// participant leaves before those who connected to it, they connect to it again.
  void await_turn_to_leave();

 private:
  struct Other {
    uint32_t number;
    bool leaves;
  };
  /// The participants of other processes in its domain that are still present.
  [[nodiscard]] std::vector<Other> others() const;

  std::string file_;
  uint32_t domain_;
  uint32_t participant_ = 0;
  TcpEnd own_{};
  std::vector<TcpEnd> peers_;
};

/// While it lives, no other participant of the trial takes its turn: one at a time chooses port and peers, starts, and
/// joins.
class TcpPlace::Turn {
 public:
  /// Blocks while another participant has its turn. Throws Error(LAGOMETER_NO_RESOURCE) without a port or a file.
  explicit Turn(TcpPlace& place);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Tells the others about the participant, which is listening now. Throws Error(LAGOMETER_NO_RESOURCE) if it is not
  /// listening, because Fast DDS only logs that.
  void join(const std::string& participant);

 private:
  TcpPlace& place_;
  std::unique_ptr<TcpList> list_;
};

}  // namespace lagometer::fastdds
