// SPDX-License-Identifier: Apache-2.0
// A publisher on UDP: a connected socket per subscriber, the same datagram sent to each in turn.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "aligned_buffer.hpp"
#include "append_list.hpp"
#include "context.hpp"
#include "rendezvous.hpp"

namespace lagometer::sockets {

class DatagramWriter {
 public:
  DatagramWriter(Node& node, const lagometer_endpoint_config& config);
  void enable() noexcept {}

  lagometer_status borrow(uint64_t bytes, lagometer_message& message) const;
  lagometer_status commit(const lagometer_message& message) noexcept;
  void discard(const lagometer_message&) const noexcept {}
  /// Looks for subscribers too: this is where connections are made.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] std::string describe() const;

 private:
  struct Connection {
    std::string name;  // of the subscriber's announcement; known names are not looked at again
    Descriptor announcement;
    Descriptor socket;
    BufferSizes default_sizes;
    std::atomic<bool> live{true};
  };

  void connect(rendezvous::Found& found);
  /// False if the socket's buffer is full.
  static bool send_to(Connection& connection, const lagometer_region& payload) noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  AlignedBuffer payload_;
  AppendList<Connection, 256> connections_;
  std::mutex connect_mutex_;  // among threads that ask matched(); the message path does not know it
  std::vector<std::string> refused_names_;
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::sockets
