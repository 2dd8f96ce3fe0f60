// SPDX-License-Identifier: Apache-2.0
// A subscriber of iceoryx: returns the publishers' chunks themselves, read-only. Or the receiving end of a service.
#pragma once

#include <iceoryx_posh/mepoo/chunk_header.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <memory>

#include "service_end.hpp"

namespace lagometer::iceoryx {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] nlohmann::json describe() const;

  /// The subscriber, after enable().
  [[nodiscard]] iox::popo::UntypedSubscriber* subscriber() const noexcept { return subscriber_.get(); }
  /// Null: a subscriber.
  [[nodiscard]] ServiceEnd* service() const noexcept { return service_.get(); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  static void on_data(iox::popo::UntypedSubscriber* subscriber, Reader* self) noexcept;
  void listen();
  static void show(const void* payload, const iox::mepoo::ChunkHeader& header, lagometer_sample& sample) noexcept;
  lagometer_status take_of_service(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) noexcept;

  Context& context_;
  Endpoint endpoint_;
  std::shared_ptr<ServiceEnd> service_;
  std::unique_ptr<iox::popo::UntypedSubscriber> subscriber_;
  bool listening_ = false;
};

}  // namespace lagometer::iceoryx
