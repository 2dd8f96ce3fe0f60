// SPDX-License-Identifier: Apache-2.0
// A publisher: one PUB socket that dials its subscribers. Or an end of a service: a client's REQ socket, which also
// dials the server, or the server's REP socket.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "context.hpp"
#include "socket.hpp"
#include "subscribers.hpp"

namespace lagometer::nng {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Socket> socket);
  /// Servers: the next message goes to the sender of this request. Errors: it was already answered.
  void answer(const lagometer_sample& request);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) noexcept { message_.reset(); }
  /// Also looks for subscribers.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  void look();
  void address_message();
  void let_messages_go() const noexcept;

  Context& context_;
  Kind kind_;
  brokerless::Endpoint endpoint_;
  std::shared_ptr<Socket> socket_;
  std::string description_;
  Message message_;
  std::array<uint8_t, 256> way_back_{};  // for replies: the header of the request
  size_t way_back_bytes_ = 0;
  uint32_t requests_ = 0;
  std::atomic<uint64_t> rejected_{0};
  int64_t going_ns_ = 0;  // how long a message may be in flight after it was sent
  std::atomic<int64_t> last_sent_ns_{0};
  brokerless::Subscribers<nng_dialer> subscribers_;
  std::optional<brokerless::Publication> publication_;
};

}  // namespace lagometer::nng
