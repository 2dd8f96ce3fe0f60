// SPDX-License-Identifier: Apache-2.0
// The requested settings of an endpoint, and its names in iceoryx.
#pragma once

#include <iceoryx_posh/popo/publisher_options.hpp>
#include <iceoryx_posh/popo/subscriber_options.hpp>

#include <string>

#include "context.hpp"

namespace lagometer::iceoryx {

/// These lengths of a subscriber's queue and a publisher's history are compiled into iceoryx.
inline constexpr uint32_t queue_max = iox::MAX_SUBSCRIBER_QUEUE_CAPACITY;
inline constexpr uint32_t history_max = iox::MAX_PUBLISHER_HISTORY;

/// If the caller left a policy open, iceoryx's own defaults apply: a queue of 256, no history, the oldest message makes
/// room for the newest.
struct Endpoint {
  /// Throws lagometer::Error for settings that iceoryx can't provide.
  explicit Endpoint(const lagometer_endpoint_config& config);

  [[nodiscard]] iox::popo::PublisherOptions publisher_options() const;
  [[nodiscard]] iox::popo::SubscriberOptions subscriber_options() const;

  PayloadType type;
  std::string topic;
  uint32_t dispatch;
  void* user;
  lagometer_data_function on_data;
  bool reliable = true;
  bool keep_all = false;
  bool kept_for_late = false;
  uint32_t depth = queue_max;
  bool depth_left_open = true;
  int64_t blocking_ns_max = floor::blocking_ns_default;

 private:
  void apply(const lagometer_qos& qos);
};

}  // namespace lagometer::iceoryx
