// SPDX-License-Identifier: Apache-2.0
// A subscriber: one SUB socket that listens for its publishers, subscribed to everything they send. Or an end of a
// service: a server's ROUTER socket, which also listens, or a client's DEALER socket.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "context.hpp"
#include "line.hpp"

namespace lagometer::zeromq {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, const std::shared_ptr<Line>& line);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  /// A taken message; for a request also its sender, as the ROUTER socket identifies it.
  struct Place {
    Message message;
    Message sender;
    bool held = false;
  };
  static constexpr size_t places = 16;

  // Needed by Waitset. The descriptor also reports the library's own work.
  static constexpr bool descriptor_tells_messages = false;
  void join_waitset();
  [[nodiscard]] int descriptor() const { return line_ ? line_->descriptor() : socket_->number(ZMQ_FD); }
  [[nodiscard]] bool has_data() const {
    const auto lock = looking();
    return (socket_->number(ZMQ_EVENTS) & ZMQ_POLLIN) != 0;
  }

  /// At most one message: it is delivered before the library is asked for another.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Line> line,
         std::shared_ptr<Socket> socket);
  void configure();
  /// Other threads also use a client's socket.
  [[nodiscard]] std::unique_lock<std::mutex> looking() const;
  [[nodiscard]] bool receive(Message& into, bool more);

  Context& context_;
  Kind kind_;
  brokerless::Endpoint endpoint_;
  std::shared_ptr<Line> line_;  // for a service
  std::shared_ptr<Socket> socket_;
  std::string description_;
  std::array<Place, places> places_;  // for messages taken and not released
  std::string socket_file_;           // for transport ipc
  std::shared_ptr<void> announcement_;
};

}  // namespace lagometer::zeromq
