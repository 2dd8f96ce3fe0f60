// SPDX-License-Identifier: Apache-2.0
// A subscriber: one SUB socket that listens for its publishers, subscribed to everything they send. Or an end of a
// service: a server's REP socket, which also listens, or a client's REQ socket.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "context.hpp"
#include "listener.hpp"
#include "socket.hpp"

namespace lagometer::nng {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Socket> socket);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  // Needed by Waitset.
  static constexpr bool descriptor_tells_messages = true;
  void join_waitset();
  [[nodiscard]] int descriptor() const { return socket_->receive_descriptor(); }
  [[nodiscard]] bool has_data() const noexcept { return false; }  // the descriptor knows

  /// At most one message: it is delivered before nng is asked for another.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  Message receive();
  void say_goodbye() noexcept;

  Context& context_;
  Kind kind_;
  brokerless::Endpoint endpoint_;
  std::shared_ptr<Socket> socket_;
  std::string description_;
  std::array<Message, 16> places_;  // messages taken and not released
  std::optional<Listener> listener_;
  std::shared_ptr<void> announcement_;
};

}  // namespace lagometer::nng
