// SPDX-License-Identifier: Apache-2.0
// A publisher of iceoryx: loans chunks of RouDi's pools, and passes them to the subscribers' queues. Or the sending end
// of a service.
#pragma once

#include <atomic>
#include <iceoryx_posh/internal/popo/ports/publisher_port_user.hpp>
#include <optional>

#include "service_end.hpp"

namespace lagometer::iceoryx {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
  /// Servers: the next message answers this request. Errors: it was already answered.
  void answer(const lagometer_sample& request);
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer();
  /// Offers the topic. Throws lagometer::Error if RouDi has no port left, or no pool for messages of this size.
  void enable();

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message) noexcept;
  void discard(lagometer_message& message) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] nlohmann::json describe() const;

 private:
  using Distributor = iox::popo::PublisherPortData::ChunkDistributorData_t;

  void require_pool() const;
  lagometer_status borrow_of_service(uint64_t bytes, lagometer_message& message);
  static void lend(void* payload, uint64_t bytes, void* chunk, lagometer_message& message) noexcept;
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] bool wait_for_room() const noexcept;

  Context& context_;
  Endpoint endpoint_;
  std::shared_ptr<ServiceEnd> service_;
  iox::popo::PublisherPortData* data_ = nullptr;  // RouDi's, in shared memory
  std::optional<iox::popo::PublisherPortUser> port_;
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::iceoryx
