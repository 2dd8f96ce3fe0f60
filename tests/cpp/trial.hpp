// SPDX-License-Identifier: Apache-2.0
// Plans as JSON that a test can bend, and a trial carried out in this process.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "records.hpp"
#include "session.hpp"

namespace lagometer::test {

using nlohmann::json;

constexpr int64_t kMillisecond_ns = 1'000'000;

/// Endpoints and rules in the plan's form (docs/PROTOCOL.md).
json reader(const std::string& topic, const std::vector<uint32_t>& streams, uint64_t payload_bytes = 128);
json writer(const std::string& topic, uint32_t stream, uint64_t payload_bytes = 128);
json timer(int64_t period_ns, const std::vector<uint32_t>& readers, const std::vector<uint32_t>& writers);
json on_message(const std::string& trigger, const std::vector<uint32_t>& readers, const std::vector<uint32_t>& writers);
json closed_loop(uint32_t reader, uint32_t writer, uint64_t messages_max, int64_t timeout_ns);
json node(const std::string& name, uint32_t index, json readers, json writers, json rules);

/// A whole plan for one worker: 20 ms of warm-up, 100 ms of measuring, 40 ms of drain.
json plan(const std::string& library, json nodes);
/// timer → relay → sink over two topics, the stream's number that of the topic.
json pipeline_plan(const std::string& library, const std::string& dispatch = "waitset");

/// What a trial recorded.
struct Recorded {
  using Key = std::tuple<engine::LaneKind, uint32_t, uint32_t>;  // kind, node, endpoint
  std::map<Key, std::vector<std::byte>> lanes;
  std::map<Key, bool> full;
  json writers;
  json readers;
  std::vector<std::string> warnings;
  int64_t start_ns = 0;

  [[nodiscard]] std::vector<engine::SentRecord> sent(uint32_t node, uint32_t stream) const;
  [[nodiscard]] std::vector<engine::ReceivedRecord> received(uint32_t node, uint32_t reader) const;
  [[nodiscard]] std::vector<engine::CauseRecord> causes(uint32_t node, uint32_t stream) const;
};

/// The lanes of a block. Fails the test if the block contradicts its own header.
Recorded decode(std::span<const std::byte> block);

/// Sends probes, with pauses in which readers can take them, until only so many readers are not matched. Throws
/// std::runtime_error at the deadline.
void match(engine::Session& session, int64_t deadline_ns, size_t unmatched = 0);

/// Creates, matches, runs the plan's phases and stops; throws what the engine throws. `received`: it ends when
/// so many messages were taken by all readers, whatever the phases say, since a busy machine may be late.
Recorded run_trial(const json& plan, uint64_t received = 0);

}  // namespace lagometer::test
