// SPDX-License-Identifier: Apache-2.0
// A publisher: one PUB socket that connects to its subscribers.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "context.hpp"
#include "subscribers.hpp"

namespace lagometer::zeromq {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) noexcept { message_.clear(); }
  /// Looks for subscribers too.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  void look();
  bool send(int flags);

  Context& context_;
  brokerless::Endpoint endpoint_;
  bool holds_back_;  // rather than drop what has no room
  Socket socket_;
  std::string description_;
  std::mutex socket_mutex_;  // commit uses the socket on the node's thread, look on the worker's and the door's
  Message message_;
  brokerless::Subscribers<std::string> subscribers_;
  std::atomic<uint64_t> rejected_{0};
  std::optional<brokerless::Publication> publication_;
};

}  // namespace lagometer::zeromq
