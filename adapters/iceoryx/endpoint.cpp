// SPDX-License-Identifier: Apache-2.0
#include "endpoint.hpp"

namespace lagometer::iceoryx {

Endpoint::Endpoint(const lagometer_endpoint_config& config)
    : type(reinterpret_cast<const Type*>(config.type)->payload),
      topic(view(config.topic)),
      dispatch(config.dispatch),
      user(config.user),
      on_data(config.on_data) {
  if (config.flags != 0 || dispatch > LAGOMETER_DISPATCH_LISTENER)
    throw Error(LAGOMETER_INVALID, "iceoryx: unknown flag or dispatch mode for topic '" + topic + "'");
  if (dispatch == LAGOMETER_DISPATCH_LISTENER && on_data == nullptr)
    throw Error(LAGOMETER_INVALID, "iceoryx: dispatch by listener without on_data for topic '" + topic + "'");
  if (config.qos != nullptr) apply(*config.qos);
}

void Endpoint::apply(const lagometer_qos& qos) {
  const std::string where = " (topic '" + topic + "')";
  constexpr uint64_t known = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY;
  if ((qos.present & ~known) != 0)
    throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: only reliability, history and durability can be set" + where);
  if ((qos.present & LAGOMETER_QOS_RELIABILITY) != 0) {
    reliable = qos.reliability == LAGOMETER_RELIABLE;
    if (qos.blocking_ns_max > 0) blocking_ns_max = qos.blocking_ns_max;
  }
  if ((qos.present & LAGOMETER_QOS_HISTORY) != 0) {
    keep_all = qos.history == LAGOMETER_KEEP_ALL;
    depth_left_open = false;
    depth = keep_all ? queue_max : qos.depth;
    if (depth < 1 || depth > queue_max)
      throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: a subscriber's queue has 1 to " + std::to_string(queue_max) +
                                             " places, not " + std::to_string(depth) + where);
  }
  kept_for_late = (qos.present & LAGOMETER_QOS_DURABILITY) != 0 && qos.durability == LAGOMETER_TRANSIENT_LOCAL;
  if (kept_for_late && (keep_all || depth > history_max))
    throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: a publisher keeps at most " + std::to_string(history_max) +
                                           " messages for late joiners: with transient_local, ask for keep_last and "
                                           "no greater depth" +
                                           where);
}

iox::popo::PublisherOptions Endpoint::publisher_options() const {
  iox::popo::PublisherOptions options;
  options.historyCapacity = kept_for_late ? depth : 0;
  options.subscriberTooSlowPolicy = keep_all ? iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER
                                             : iox::popo::ConsumerTooSlowPolicy::DISCARD_OLDEST_DATA;
  return options;
}

iox::popo::SubscriberOptions Endpoint::subscriber_options() const {
  iox::popo::SubscriberOptions options;
  options.queueCapacity = depth;
  options.historyRequest = kept_for_late ? depth : 0;
  options.requiresPublisherHistorySupport = kept_for_late;
  options.queueFullPolicy =
      keep_all ? iox::popo::QueueFullPolicy::BLOCK_PRODUCER : iox::popo::QueueFullPolicy::DISCARD_OLDEST_DATA;
  return options;
}

}  // namespace lagometer::iceoryx
