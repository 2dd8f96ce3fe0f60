// SPDX-License-Identifier: Apache-2.0
// A subscriber of iceoryx: shows the publishers' chunks themselves, read-only.
#pragma once

#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <memory>

#include "endpoint.hpp"

namespace lagometer::iceoryx {

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void enable();

  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept { out.exact = 2; }
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] nlohmann::json describe() const;

  /// Null before enable().
  [[nodiscard]] iox::popo::UntypedSubscriber* subscriber() const noexcept { return subscriber_.get(); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  static void on_data(iox::popo::UntypedSubscriber* subscriber, Reader* self) noexcept;
  void listen();

  Context& context_;
  Endpoint endpoint_;
  std::unique_ptr<iox::popo::UntypedSubscriber> subscriber_;
  bool listening_ = false;
};

}  // namespace lagometer::iceoryx
