// SPDX-License-Identifier: Apache-2.0
// Limits that both workers share. Made by `python -m lagometer.run.worker.plan_bounds`: change the models instead.
#pragma once

#include <cstdint>

namespace lagometer::engine {

/// Both included; whole multiples of `step`.
template <typename Number>
struct Bounds {
  Number low;
  Number high;
  Number step = 1;
};

/// Of any text in a plan.
inline constexpr uint32_t kTextCharactersMax = 4096;
/// Of a plan's JSON.
inline constexpr uint32_t kNestingLevelsMax = 32;
/// Of a recorded schedule.
inline constexpr int64_t kIntervalMeanMin_ns = 1000;
/// Of standard input.
inline constexpr uint32_t kLineBytesMax = 67108864;
/// The latest common start.
inline constexpr int64_t kAtMax_ns = 4611686018427387904;
/// Of a file that payloads are filled from.
inline constexpr uint32_t kContentFileBytesMax = 67108864;
/// Of a worker's records.
inline constexpr uint64_t kRecordsBytesMax = 8589934592;
/// From the first probe to the second; each interval is a quarter longer.
inline constexpr int64_t kProbeFirst_ns = 1000000;
/// Between probes, at most.
inline constexpr int64_t kProbeSlowest_ns = 50000000;
/// The largest plausible time in flight of a probe.
inline constexpr int64_t kInFlightMax_ns = 10000000;
/// How often a worker looks whether it is matched.
inline constexpr int64_t kMatchLook_ns = 500000;
/// Before the start that a standalone worker gives itself.
inline constexpr int64_t kStandaloneHeadStart_ns = 5000000;
/// For which a standalone worker that is matched goes on probing.
inline constexpr int64_t kStandaloneGrace_ns = 500000000;

/// By model: of its numbers, of the lengths of its texts and lists.
namespace plan_bounds {

struct Worker {
  static constexpr Bounds<uint32_t> index{0U, 1048576U};
  static constexpr Bounds<uint32_t> name_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> host_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> host_number{0U, 1048576U};
};

struct Phases {
  static constexpr Bounds<int64_t> discovery_timeout_ns{1, 3600000000000};
  static constexpr Bounds<int64_t> warmup_ns{0, 3600000000000};
  static constexpr Bounds<int64_t> measure_ns{1, 86400000000000};
  static constexpr Bounds<int64_t> drain_ns{0, 3600000000000};
};

struct Scheduling {
  static constexpr Bounds<uint32_t> priority{0U, 99U};
  static constexpr Bounds<uint32_t> cpus_items{0U, 4096U};
  static constexpr Bounds<uint32_t> cpus{0U, 1023U};
};

struct Adapter {
  static constexpr Bounds<uint32_t> name_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> library_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> environment_characters{0U, 4096U};
};

struct Security {
  static constexpr Bounds<uint32_t> identity_ca_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> permissions_ca_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> certificate_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> private_key_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> governance_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> permissions_characters{1U, 4096U};
};

struct Context {
  static constexpr Bounds<uint32_t> adapter{0U, 4294967295U};
  static constexpr Bounds<uint32_t> domain{0U, 4294967295U};
  static constexpr Bounds<uint32_t> name_characters{1U, 4096U};
};

struct Liveliness {
  static constexpr Bounds<int64_t> lease_ns{1000, 4611686018427387904};
};

struct Qos {
  static constexpr Bounds<uint32_t> depth{1U, 1048576U};
  static constexpr Bounds<int64_t> deadline_ns{1000, 4611686018427387904};
  static constexpr Bounds<int64_t> lifespan_ns{1000, 4611686018427387904};
  static constexpr Bounds<uint32_t> partition_characters{1U, 256U};
  static constexpr Bounds<uint32_t> instances{1U, 10000U};
};

struct Endpoint {
  static constexpr Bounds<uint32_t> context{0U, 4294967295U};
  static constexpr Bounds<uint32_t> topic_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> payload_bytes{4U, 1073741824U};
  static constexpr Bounds<uint32_t> capacity{1U, 67108864U};
};

struct Reader {
  static constexpr Bounds<uint32_t> streams_items{0U, 4096U};
  static constexpr Bounds<uint32_t> streams{0U, 1048576U};
};

struct Writer {
  static constexpr Bounds<uint32_t> stream{0U, 1048576U};
  static constexpr Bounds<uint32_t> subscribers{0U, 65536U};
  static constexpr Bounds<uint32_t> sizes_bytes_items{0U, 65536U};
  static constexpr Bounds<uint32_t> sizes_bytes{4U, 1073741824U};
  static constexpr Bounds<uint32_t> replied_on{0U, 4294967295U};
};

struct RandomContent {
  static constexpr Bounds<uint64_t> seed{0U, 18446744073709551615U};
};

struct RecordedContent {
  static constexpr Bounds<uint32_t> path_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> crc32{0U, 4294967295U};
};

struct Answers {
  static constexpr Bounds<uint32_t> reader{0U, 4294967295U};
  static constexpr Bounds<uint32_t> stream{0U, 1048576U};
};

struct NormalWork {
  static constexpr Bounds<int64_t> spread_ns{0, 3600000000000};
  static constexpr Bounds<uint64_t> seed{0U, 18446744073709551615U};
};

struct LognormalWork {
  static constexpr Bounds<double> sigma{0.0, 10.0};
  static constexpr Bounds<uint64_t> seed{0U, 18446744073709551615U};
};

struct RecordedWork {
  static constexpr Bounds<uint32_t> times_ns_items{1U, 65536U};
  static constexpr Bounds<int64_t> times_ns{0, 3600000000000};
};

struct Rule {
  static constexpr Bounds<uint32_t> readers_items{0U, 4096U};
  static constexpr Bounds<uint32_t> readers{0U, 4294967295U};
  static constexpr Bounds<int64_t> work_ns{0, 3600000000000};
  static constexpr Bounds<uint32_t> writers_items{0U, 4096U};
  static constexpr Bounds<uint32_t> writers{0U, 4294967295U};
};

struct TimerRule {
  static constexpr Bounds<int64_t> period_ns{1000, 3600000000000};
  static constexpr Bounds<int64_t> offset_ns{0, 3600000000000};
};

struct MessageRule {
  static constexpr Bounds<uint32_t> uses_items{0U, 4096U};
  static constexpr Bounds<uint32_t> uses{0U, 4294967295U};
};

struct ClosedLoopRule {
  static constexpr Bounds<int64_t> timeout_ns{1000, 3600000000000};
  static constexpr Bounds<uint64_t> messages_max{0U, 9223372036854775807U};
};

struct PoissonSchedule {
  static constexpr Bounds<uint64_t> seed{0U, 18446744073709551615U};
};

struct BurstSchedule {
  static constexpr Bounds<uint32_t> messages{1U, 1048576U};
};

struct RampSchedule {
  static constexpr Bounds<int64_t> end_period_ns{1000, 3600000000000};
  static constexpr Bounds<int64_t> begin_ns{0, 3600000000000};
  static constexpr Bounds<int64_t> duration_ns{1, 86400000000000};
};

struct RecordedSchedule {
  static constexpr Bounds<uint32_t> intervals_ns_items{1U, 1048576U};
  static constexpr Bounds<int64_t> intervals_ns{0, 3600000000000};
};

struct Node {
  static constexpr Bounds<uint32_t> name_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> index{0U, 1048576U};
  static constexpr Bounds<uint32_t> cpus_items{0U, 4096U};
  static constexpr Bounds<uint32_t> cpus{0U, 1023U};
  static constexpr Bounds<uint32_t> readers_items{0U, 4096U};
  static constexpr Bounds<uint32_t> writers_items{0U, 4096U};
  static constexpr Bounds<uint32_t> rules_items{0U, 4096U};
};

struct Plan {
  static constexpr Bounds<uint32_t> protocol{1U, 1U};
  static constexpr Bounds<uint32_t> cell_characters{0U, 4096U};
  static constexpr Bounds<uint32_t> trial{0U, 4294967295U};
  static constexpr Bounds<uint32_t> runtime_directory_characters{1U, 4096U};
  static constexpr Bounds<uint32_t> heap_offset_bytes{0U, 4080U, 16U};
  static constexpr Bounds<int64_t> start_ns{0, 3600000000000};
  static constexpr Bounds<uint32_t> adapters_items{1U, 4096U};
  static constexpr Bounds<uint32_t> contexts_items{1U, 4096U};
  static constexpr Bounds<uint32_t> nodes_items{1U, 4096U};
};

}  // namespace plan_bounds
}  // namespace lagometer::engine
