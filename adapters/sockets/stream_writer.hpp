// SPDX-License-Identifier: Apache-2.0
// A publisher on stream sockets: one connection per subscriber, the same frame sent to each in turn.
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

class StreamWriter {
 public:
  StreamWriter(Node& node, const lagometer_endpoint_config& config);
  void enable() noexcept {}

  lagometer_status borrow(uint64_t bytes, lagometer_message& message) const;
  lagometer_status commit(const lagometer_message& message);
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
    // The rest of a frame that was begun and could not be ended in time; goes before anything else.
    AlignedBuffer rest;
    uint64_t rest_begin = 0;
    uint64_t rest_end = 0;
  };
  enum class Outcome : uint8_t { sent, refused };

  void connect(rendezvous::Found& found);
  Outcome send_frame(Connection& connection, const uint8_t* frame, uint64_t bytes);
  bool finish_rest(Connection& connection);
  uint64_t send_some(Connection& connection, const uint8_t* data, uint64_t bytes) noexcept;
  bool wait_writable(Connection& connection);

  Context& context_;
  floor::Endpoint endpoint_;
  AlignedBuffer frame_;
  AppendList<Connection, 256> connections_;
  std::mutex connect_mutex_;  // among threads that ask matched(); the message path does not know it
  std::vector<std::string> refused_names_;
  int64_t until_ns_ = 0;  // the deadline of the commit in progress; 0: none needed so far
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::sockets
