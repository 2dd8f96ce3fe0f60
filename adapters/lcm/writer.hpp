// SPDX-License-Identifier: Apache-2.0
// A publisher: a channel, and the buffer that is passed to lcm_publish().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "context.hpp"

namespace lagometer::lcm {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  void enable() noexcept {}

  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(const lagometer_message& message);
  void discard(const lagometer_message&) const noexcept {}
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] static std::string describe() { return PlainTraits::describe(0, nullptr); }

 private:
  std::shared_ptr<Instance> instance_;
  brokerless::Endpoint endpoint_;
  std::string channel_;
  std::vector<uint8_t> payload_;
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::lcm
