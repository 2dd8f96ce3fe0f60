// SPDX-License-Identifier: Apache-2.0
// A publisher: one PUB socket that connects to its subscribers. Or an end of a service: a client's DEALER socket, which
// also connects to the server, or the server's ROUTER socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "context.hpp"
#include "line.hpp"
#include "subscribers.hpp"

namespace lagometer::zeromq {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, const std::shared_ptr<Line>& line);
  /// Servers: the next message goes to the sender of this request. Errors: it was already answered.
  void answer(const lagometer_sample& request);
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) noexcept { message_.clear(); }
  /// Also looks for subscribers.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Line> line,
         std::shared_ptr<Socket> socket);
  void configure();
  void look();
  bool send(int flags);
  bool send_reply();
  lagometer_status commit_to_topic();
  lagometer_status commit_request();
  lagometer_status reject();

  Context& context_;
  Kind kind_;
  brokerless::Endpoint endpoint_;
  bool holds_back_;             // instead of dropping messages without room
  std::shared_ptr<Line> line_;  // for a service
  std::shared_ptr<Socket> socket_;
  std::string description_;
  std::mutex own_mutex_;      // commit uses the socket on the node's thread, look on the worker's and the door's
  std::mutex& socket_mutex_;  // that one, or the line's
  Message message_;
  Message receiver_;  // for a reply: the sender of the request
  brokerless::Subscribers<std::string> subscribers_;
  std::atomic<uint64_t> rejected_{0};
  std::optional<brokerless::Publication> publication_;
};

}  // namespace lagometer::zeromq
