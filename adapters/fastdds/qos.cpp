// SPDX-License-Identifier: Apache-2.0
#include "qos.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "duration.hpp"

namespace lagometer::fastdds {
namespace {

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;
constexpr int64_t kAnnouncementsPerLease = 3;  // as in Fast DDS's own examples
constexpr uint64_t kKnownPolicies = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY |
                                    LAGOMETER_QOS_DEADLINE | LAGOMETER_QOS_LIFESPAN | LAGOMETER_QOS_LIVELINESS |
                                    LAGOMETER_QOS_PARTITION;

eprosima::fastrtps::Duration_t duration(int64_t time_ns, const char* policy) {
  refuse(time_ns <= 0, std::string(policy) + " must be longer than 0 ns, not " + std::to_string(time_ns));
  return to_duration(time_ns);
}

template <typename Qos>
void apply_reliability(const lagometer_qos& wanted, Qos& qos) {
  refuse(wanted.reliability > LAGOMETER_RELIABLE, "reliability is 0 (best effort) or 1 (reliable)");
  const bool reliable = wanted.reliability == LAGOMETER_RELIABLE;
  qos.reliability().kind = reliable ? dds::RELIABLE_RELIABILITY_QOS : dds::BEST_EFFORT_RELIABILITY_QOS;
  if (wanted.blocking_ns_max > 0) {
    qos.reliability().max_blocking_time = duration(wanted.blocking_ns_max, "blocking time");
  }
}

template <typename Qos>
void apply_history(const lagometer_qos& wanted, Qos& qos) {
  refuse(wanted.history > LAGOMETER_KEEP_ALL, "history is 0 (keep last) or 1 (keep all)");
  if (wanted.history == LAGOMETER_KEEP_ALL) {
    qos.history().kind = dds::KEEP_ALL_HISTORY_QOS;
    return;
  }
  const auto depth_max = static_cast<uint32_t>(qos.resource_limits().max_samples);
  refuse(wanted.depth == 0 || wanted.depth > depth_max, "depth must be from 1 to " + std::to_string(depth_max) +
                                                            ", the vendor's limit of samples, not " +
                                                            std::to_string(wanted.depth));
  qos.history().kind = dds::KEEP_LAST_HISTORY_QOS;
  qos.history().depth = static_cast<int32_t>(wanted.depth);
}

// Each instance has its own history: the vendor's limits are for 10 of them, and 5000 samples in all.
template <typename Qos>
void make_room(uint32_t instances, Qos& qos) {
  if (instances == 0) return;
  auto& limits = qos.resource_limits();
  const auto count = static_cast<int32_t>(instances);
  const bool all = qos.history().kind == dds::KEEP_ALL_HISTORY_QOS;
  limits.max_samples_per_instance = all ? std::max(1, limits.max_samples / count) : qos.history().depth;
  limits.max_instances = count;
  limits.max_samples = count * limits.max_samples_per_instance;
  limits.allocated_samples = std::min(limits.allocated_samples, limits.max_samples);
}

// A writer must announce itself more often than its lease.
template <typename Qos>
void apply_liveliness(const lagometer_qos& wanted, Qos& qos) {
  refuse(wanted.liveliness > LAGOMETER_MANUAL_BY_TOPIC, "liveliness is 0 (automatic) or 1 (manual by topic)");
  const bool manual = wanted.liveliness == LAGOMETER_MANUAL_BY_TOPIC;
  qos.liveliness().kind = manual ? dds::MANUAL_BY_TOPIC_LIVELINESS_QOS : dds::AUTOMATIC_LIVELINESS_QOS;
  qos.liveliness().lease_duration = duration(wanted.liveliness_lease_ns, "the lease of liveliness");
  if constexpr (std::is_same_v<Qos, dds::DataWriterQos>) {
    qos.liveliness().announcement_period = duration(wanted.liveliness_lease_ns / kAnnouncementsPerLease, "lease");
  }
}

template <typename Qos>
void apply_policies(const lagometer_qos& wanted, Qos& qos) {
  if ((wanted.present & ~kKnownPolicies) != 0) {
    throw Error(LAGOMETER_UNSUPPORTED, "fastdds: a QoS policy is not known here");
  }
  if ((wanted.present & LAGOMETER_QOS_RELIABILITY) != 0) apply_reliability(wanted, qos);
  if ((wanted.present & LAGOMETER_QOS_HISTORY) != 0) apply_history(wanted, qos);
  if ((wanted.present & LAGOMETER_QOS_DURABILITY) != 0) {
    refuse(wanted.durability > LAGOMETER_TRANSIENT_LOCAL, "durability is 0 (volatile) or 1 (transient local)");
    const bool kept = wanted.durability == LAGOMETER_TRANSIENT_LOCAL;
    qos.durability().kind = kept ? dds::TRANSIENT_LOCAL_DURABILITY_QOS : dds::VOLATILE_DURABILITY_QOS;
  }
  if ((wanted.present & LAGOMETER_QOS_DEADLINE) != 0) qos.deadline().period = duration(wanted.deadline_ns, "deadline");
  if ((wanted.present & LAGOMETER_QOS_LIFESPAN) != 0) {
    qos.lifespan().duration = duration(wanted.lifespan_ns, "lifespan");
  }
  if ((wanted.present & LAGOMETER_QOS_LIVELINESS) != 0) apply_liveliness(wanted, qos);
  if ((wanted.present & LAGOMETER_QOS_PARTITION) != 0) {
    qos.properties().properties().emplace_back("partitions", std::string(view(wanted.partition)));
  }
}

template <typename Qos>
void apply_data_sharing(const Settings& settings, const Type& type, Qos& qos) {
  switch (settings.transport) {
    case Transport::kStandard:
      break;
    case Transport::kUdp:
    case Transport::kShm:
    case Transport::kTcp:
      qos.data_sharing().off();
      break;
    case Transport::kDataSharing:
      refuse(!type.fixed(), "data sharing needs a type of fixed size: choose type fixed or another transport");
      qos.data_sharing().on("");
      break;
  }
}

// The option applies to the whole study; an endpoint's own deadline takes precedence.
template <typename Qos>
void apply_options(const lagometer_qos* wanted, const Settings& settings, const Type& type, Qos& qos) {
  apply_data_sharing(settings, type, qos);
  const bool has_own = wanted != nullptr && (wanted->present & LAGOMETER_QOS_DEADLINE) != 0;
  if (settings.deadline_ms != 0 && !has_own) {
    qos.deadline().period = duration(settings.deadline_ms * kNanosecondsPerMillisecond, "option deadline_ms");
  }
}

}  // namespace

dds::DataWriterQos writer_qos(const dds::DataWriterQos& initial, const lagometer_qos* wanted, const Settings& settings,
                              const Type& type) {
  dds::DataWriterQos qos = initial;
  if (wanted != nullptr) apply_policies(*wanted, qos);
  make_room(type.instances(), qos);
  apply_options(wanted, settings, type, qos);
  if (settings.heartbeat_period_ms != 0) {
    qos.reliable_writer_qos().times.heartbeatPeriod =
        duration(settings.heartbeat_period_ms * kNanosecondsPerMillisecond, "heartbeat period");
  }
  if (settings.publish_mode_asked || settings.profiles_file.empty()) {
    qos.publish_mode().kind = settings.synchronous ? dds::SYNCHRONOUS_PUBLISH_MODE : dds::ASYNCHRONOUS_PUBLISH_MODE;
  }
  return qos;
}

dds::DataReaderQos reader_qos(dds::DataReaderQos initial, const lagometer_qos* wanted, const Settings& settings,
                              const Type& type) {
  dds::DataReaderQos qos = std::move(initial);
  if (wanted != nullptr) apply_policies(*wanted, qos);
  make_room(type.instances(), qos);
  apply_options(wanted, settings, type, qos);
  return qos;
}

}  // namespace lagometer::fastdds
