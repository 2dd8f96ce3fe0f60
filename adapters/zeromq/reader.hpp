// SPDX-License-Identifier: Apache-2.0
// A subscriber: one SUB socket that listens for its publishers, subscribed to all that they send. Or an end of a
// service: what a server's ROUTER socket gets, who listens likewise, or a client's DEALER socket.
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
  /// Of a service.
  Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, const std::shared_ptr<Line>& line);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  /// A message that was taken; of a request also who sent it, as the ROUTER socket calls him.
  struct Place {
    Message message;
    Message sender;
    bool held = false;
  };
  static constexpr size_t places = 16;

  // What Waitset asks for. The descriptor tells of work of the library's own, too.
  static constexpr bool descriptor_tells_messages = false;
  void join_waitset();
  [[nodiscard]] int descriptor() const { return line_ ? line_->descriptor() : socket_->number(ZMQ_FD); }
  [[nodiscard]] bool has_data() const {
    const auto lock = looking();
    return (socket_->number(ZMQ_EVENTS) & ZMQ_POLLIN) != 0;
  }

  /// At most one message: it is handed over before the library is asked for another.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Line> line,
         std::shared_ptr<Socket> socket);
  void configure();
  /// A client's socket is not this thread's alone.
  [[nodiscard]] std::unique_lock<std::mutex> looking() const;
  [[nodiscard]] bool receive(Message& into, bool more);

  Context& context_;
  Kind kind_;
  brokerless::Endpoint endpoint_;
  std::shared_ptr<Line> line_;  // of a service
  std::shared_ptr<Socket> socket_;
  std::string description_;
  std::array<Place, places> places_;  // for what is taken and not given back
  std::string socket_file_;           // of transport ipc
  std::optional<rendezvous::Announcement> announcement_;
};

}  // namespace lagometer::zeromq
