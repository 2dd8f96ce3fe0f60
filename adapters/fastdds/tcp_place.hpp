// SPDX-License-Identifier: Apache-2.0
// How the participants of a trial find each other over TCP, which has no multicast to ask with: each one listens on a
// port of its own on the loopback, and connects to those that came before it. Who came before is kept in the trial's
// runtime directory, as a user would write it into each participant's list of initial peers. They come one after the
// other, so that whoever is named there listens already, and leave in the reverse order (see `await_turn_to_leave`).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lagometer::fastdds {

/// One end: the port that it listens on, the logical port, in the vendor's sense, that all of its traffic goes to, and
/// whose they are, as the text of a GUID prefix (empty until it is known).
struct TcpEnd {
  uint16_t port;
  uint16_t logical_port;
  std::string participant;
};

class TcpList;

/// The place of one participant, from before it is made until after it is gone.
class TcpPlace {
 public:
  class Turn;

  /// Draws the number. Throws Error(LAGOMETER_INVALID) if a domain holds no more, Error(LAGOMETER_NO_RESOURCE) without
  /// a file.
  TcpPlace(std::string_view runtime_directory, uint32_t domain);
  ~TcpPlace();
  TcpPlace(const TcpPlace&) = delete;
  TcpPlace& operator=(const TcpPlace&) = delete;

  /// The number that the participant must have, since its logical port and its GUID follow from it.
  [[nodiscard]] uint32_t participant() const noexcept { return participant_; }
  /// Where it listens; ports are 0 before its turn.
  [[nodiscard]] const TcpEnd& own() const noexcept { return own_; }
  /// Those who came before it and were there at its turn.
  [[nodiscard]] const std::vector<TcpEnd>& peers() const noexcept { return peers_; }

  /// The peers that are still there and must be met, as participants. Throws Error(LAGOMETER_NO_RESOURCE).
  [[nodiscard]] std::vector<std::string> peers_to_meet() const;

  /// To be called once the participant's endpoints are gone. Returns when all others are that far, and those that came
  /// later are gone; or after a bounded time, for nobody else has to leave.
  /// Fast DDS 2.9 frees what it receives into while a second connection still delivers there, so nobody may close
  /// while several others talk; and one that goes before those who connected to it is connected to again.
  void await_turn_to_leave();

 private:
  struct Other {
    uint32_t number;
    bool leaves;
  };
  /// The participants of other processes, in its domain, that are still there.
  [[nodiscard]] std::vector<Other> others() const;

  std::string file_;
  uint32_t domain_;
  uint32_t participant_ = 0;
  TcpEnd own_{};
  std::vector<TcpEnd> peers_;
};

/// While it lives no other participant of the trial takes its turn: one chooses port and peers, starts, and joins.
class TcpPlace::Turn {
 public:
  /// Blocks while it is another one's turn. Throws Error(LAGOMETER_NO_RESOURCE) without a port or a file.
  explicit Turn(TcpPlace& place);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  /// Lets the others know of the participant, which listens now. Throws Error(LAGOMETER_NO_RESOURCE) if nobody does, as
  /// Fast DDS only logs when it can't.
  void join(const std::string& participant);

 private:
  TcpPlace& place_;
  std::unique_ptr<TcpList> list_;
};

}  // namespace lagometer::fastdds
