// SPDX-License-Identifier: Apache-2.0
// A publisher on UDP: a connected socket per subscriber; the same datagram is sent to each in turn.
#pragma once

#include <cstdint>
#include <string>

#include "aligned_buffer.hpp"
#include "connections.hpp"

namespace lagometer::sockets {

class DatagramWriter {
 public:
  DatagramWriter(Node& node, const lagometer_endpoint_config& config);
  void enable() noexcept {}

  lagometer_status borrow(uint64_t bytes, lagometer_message& message) const;
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) const noexcept {}
  /// Also looks for subscribers: this is where connections are created.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept { connections_.counters(out); }
  [[nodiscard]] std::string describe() const { return connections_.describe(); }

 private:
  /// Returns false if the socket's buffer is full.
  static bool send_to(Connection& connection, const lagometer_region& payload) noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  AlignedBuffer payload_;
  Connections<Connection> connections_;
};

}  // namespace lagometer::sockets
