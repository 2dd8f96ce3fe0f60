// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

namespace lagometer::lcm {

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : instance_(node.context.instance()),
      endpoint_(Type::endpoint(config)),
      channel_(to_channel(endpoint_.topic)),
      payload_(endpoint_.type.bytes_max) {}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  message.origin = LAGOMETER_ORIGIN_COPIED;
  message.region_count = 1;
  message.regions[0] = {payload_.data(), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(const lagometer_message& message) {
  if (instance_->publish(channel_, payload_.data(), message.regions[0].size)) return LAGOMETER_OK;
  rejected_.fetch_add(1, std::memory_order_relaxed);
  return LAGOMETER_REJECTED;
}

void Writer::matched(lagometer_matched& out) const noexcept {
  out.count = 0;
  out.exact = 2;  // a multicast socket does not know who listens
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

}  // namespace lagometer::lcm
