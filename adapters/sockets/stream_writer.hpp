// SPDX-License-Identifier: Apache-2.0
// A publisher on stream sockets: one connection per subscriber; the same frame is sent to each in turn.
#pragma once

#include <cstdint>
#include <string>

#include "aligned_buffer.hpp"
#include "connections.hpp"

namespace lagometer::sockets {

class StreamWriter {
 public:
  StreamWriter(Node& node, const lagometer_endpoint_config& config);
  void enable() noexcept {}

  lagometer_status borrow(uint64_t bytes, lagometer_message& message) const;
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) const noexcept {}
  /// Also looks for subscribers: this is where connections are created.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept { connections_.counters(out); }
  [[nodiscard]] std::string describe() const { return connections_.describe(); }

 private:
  struct Stream : Connection {
    // The rest of a frame that could not be completed in time; sent before anything else.
    AlignedBuffer rest;
    uint64_t rest_begin = 0;
    uint64_t rest_end = 0;
  };

  /// Returns false if the frame was rejected; a frame that was begun counts as sent.
  bool send_frame(Stream& stream, const uint8_t* frame, uint64_t bytes);
  bool finish_rest(Stream& stream);
  static uint64_t send_some(Stream& stream, const uint8_t* data, uint64_t bytes) noexcept;
  bool wait_writable(const Stream& stream);

  Context& context_;
  floor::Endpoint endpoint_;
  AlignedBuffer frame_;
  Connections<Stream> connections_;
  int64_t until_ns_ = 0;  // the deadline of the commit in progress; 0: none needed so far
};

}  // namespace lagometer::sockets
