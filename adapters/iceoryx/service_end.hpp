// SPDX-License-Identifier: Apache-2.0
// A client or a server of iceoryx, shared by its writer and its reader: requests and replies are chunks of RouDi's
// pools, like messages.
#pragma once

#include <iceoryx_posh/popo/untyped_client.hpp>
#include <iceoryx_posh/popo/untyped_server.hpp>
#include <iceoryx_posh/popo/wait_set.hpp>

#include <array>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "endpoint.hpp"

namespace lagometer::iceoryx {

/// This length of a client's reply queue is compiled into iceoryx.
inline constexpr uint32_t service_queue_max = iox::MAX_RESPONSE_QUEUE_CAPACITY;

class ServiceEnd {
 public:
  virtual ~ServiceEnd() = default;
  ServiceEnd(const ServiceEnd&) = delete;
  ServiceEnd& operator=(const ServiceEnd&) = delete;

  /// Creates the port; called by whichever end is enabled first.
  virtual void open() = 0;
  /// Has iceoryx's thread call back from now on; called before any message can arrive.
  virtual void listen(iox::popo::Listener& listener) = 0;
  virtual void stop_listening(iox::popo::Listener& listener) noexcept = 0;
  /// Returns false if the wait set has no room.
  virtual bool join(iox::popo::WaitSet<>& waitset) = 0;

  /// Memory to write to; null: no chunk is free.
  virtual void* loan(uint32_t bytes) = 0;
  /// Returns false if nobody is there to get it.
  virtual bool send(void* payload) noexcept = 0;
  virtual void discard(void* payload) noexcept = 0;
  /// The next loan answers this request. Errors: it was already answered; the end is not a server's.
  virtual void answer(const void* request) = 0;

  /// Null: there is nothing, or the maximum is already taken.
  virtual const void* take() noexcept = 0;
  virtual void release(const void* payload) noexcept = 0;

  /// How many are at the other end, if iceoryx reports it.
  [[nodiscard]] virtual std::optional<uint32_t> counterparts() const noexcept = 0;
  /// The settings of its queue.
  [[nodiscard]] virtual nlohmann::json describe() const = 0;

 protected:
  ServiceEnd(Context& context, Endpoint receives) : context_(context), receives_(std::move(receives)) {}
  void on_data() const noexcept { receives_.on_data(receives_.user); }

  Context& context_;
  Endpoint receives_;  // the receiving end: for a client, of its replies
};

std::shared_ptr<ServiceEnd> make_client_end(Context& context, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);
std::shared_ptr<ServiceEnd> make_server_end(Context& context, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply);

}  // namespace lagometer::iceoryx
