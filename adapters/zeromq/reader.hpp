// SPDX-License-Identifier: Apache-2.0
// A subscriber: one SUB socket that listens for its publishers, subscribed to all that they send.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "context.hpp"

namespace lagometer::zeromq {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  // What Waitset asks for. The descriptor tells of work of the library's own, too.
  static constexpr bool descriptor_tells_messages = false;
  void join_waitset();
  [[nodiscard]] int descriptor() const { return socket_.number(ZMQ_FD); }
  [[nodiscard]] bool has_data() const { return (socket_.number(ZMQ_EVENTS) & ZMQ_POLLIN) != 0; }

  /// At most one message: it is handed over before the library is asked for another.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  struct Place {
    Message message;
    bool held = false;
  };

  Context& context_;
  brokerless::Endpoint endpoint_;
  Socket socket_;
  std::string description_;
  std::array<Place, 16> places_;  // for what is taken and not given back
  std::string socket_file_;       // of transport ipc
  std::optional<rendezvous::Announcement> announcement_;
};

}  // namespace lagometer::zeromq
