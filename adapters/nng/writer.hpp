// SPDX-License-Identifier: Apache-2.0
// A publisher: one PUB socket that dials its subscribers.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "context.hpp"
#include "socket.hpp"
#include "subscribers.hpp"

namespace lagometer::nng {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) noexcept { message_.reset(); }
  /// Looks for subscribers too.
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] const std::string& describe() const noexcept { return description_; }

 private:
  void look();
  void let_messages_go() const noexcept;

  Context& context_;
  brokerless::Endpoint endpoint_;
  Socket socket_;
  std::string description_;
  Message message_;
  int64_t going_ns_ = 0;  // how long after its sending a message may be under way
  std::atomic<int64_t> last_sent_ns_{0};
  brokerless::Subscribers<nng_dialer> subscribers_;
  std::optional<brokerless::Publication> publication_;
};

}  // namespace lagometer::nng
