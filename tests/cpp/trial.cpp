// SPDX-License-Identifier: Apache-2.0
#include "trial.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "clock.hpp"
#include "session.hpp"

namespace lagometer::test {

using namespace engine;

namespace {

const json kQos = {{"reliability", "reliable"}, {"history", "keep_last"}, {"depth", 64}};

template <typename Record>
std::vector<Record> records_of(const Recorded& recorded, LaneKind kind, uint32_t node, uint32_t endpoint) {
  const auto found = recorded.lanes.find({kind, node, endpoint});
  if (found == recorded.lanes.end()) return {};
  std::vector<Record> records(found->second.size() / sizeof(Record));
  if (!records.empty()) std::memcpy(records.data(), found->second.data(), found->second.size());
  return records;
}

std::filesystem::path runtime_directory() {
  return std::filesystem::temp_directory_path() / ("lagometer-test-" + std::to_string(getpid()));
}

/// Nothing is left behind, whatever a test found.
class Tidy : public testing::Environment {
 public:
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(runtime_directory(), ignored);
  }
};
[[maybe_unused]] testing::Environment* const kTidy = testing::AddGlobalTestEnvironment(new Tidy);

std::vector<std::byte> side_by_side(std::span<const std::byte> block, const LaneHeader& lane) {
  const uint64_t bytes = lane.count * lane.record_bytes;
  EXPECT_LE(lane.offset + bytes, block.size());
  const auto records = block.subspan(lane.offset, bytes);
  return {records.begin(), records.end()};
}

std::vector<std::byte> in_pages(std::span<const std::byte> block, const LaneHeader& lane) {
  EXPECT_EQ(lane.page_bytes, kPageBytes);
  EXPECT_EQ(lane.offset % kPageBytes, 0U);
  std::vector<std::byte> records;
  const uint64_t full = records_per_page(lane.record_bytes);
  for (uint64_t at = lane.offset, first = 0; first < lane.capacity; at += kPageBytes, first += full) {
    EXPECT_LE(at + kPageBytes, block.size());
    uint64_t count = 0;
    std::memcpy(&count, block.data() + at, sizeof count);
    EXPECT_LE(count, std::min(full, lane.capacity - first));
    const auto page = block.subspan(at + kPageHeadBytes, count * lane.record_bytes);
    records.insert(records.end(), page.begin(), page.end());
    if (count < full) break;
  }
  return records;
}

void sleep_until(int64_t time_ns) {
  const timespec time = to_timespec(time_ns);
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

json reader(const std::string& topic, const std::vector<uint32_t>& streams, uint64_t payload_bytes) {
  return {{"context", 0}, {"topic", topic},     {"type", "bytes"},  {"payload_bytes", payload_bytes},
          {"qos", kQos},  {"streams", streams}, {"capacity", 65536}};
}

json writer(const std::string& topic, uint32_t stream, uint64_t payload_bytes) {
  return {{"context", 0}, {"topic", topic},   {"type", "bytes"},  {"payload_bytes", payload_bytes},
          {"qos", kQos},  {"stream", stream}, {"subscribers", 1}, {"capacity", 65536}};
}

json timer(int64_t period_ns, const std::vector<uint32_t>& readers, const std::vector<uint32_t>& writers) {
  return {{"trigger", "timer"}, {"period_ns", period_ns}, {"offset_ns", 0},
          {"readers", readers}, {"work_ns", 0},           {"writers", writers}};
}

json on_message(const std::string& trigger, const std::vector<uint32_t>& readers,
                const std::vector<uint32_t>& writers) {
  return {{"trigger", trigger}, {"readers", readers}, {"work_ns", 0}, {"writers", writers}};
}

json closed_loop(uint32_t reader, uint32_t writer, uint64_t messages_max, int64_t timeout_ns) {
  return {{"trigger", "closed_loop"}, {"readers", {reader}},      {"work_ns", 0},
          {"writers", {writer}},      {"timeout_ns", timeout_ns}, {"messages_max", messages_max}};
}

json node(const std::string& name, uint32_t index, json readers, json writers, json rules) {
  return {{"name", name},
          {"index", index},
          {"dispatch", "waitset"},
          {"cpus", json::array()},
          {"readers", std::move(readers)},
          {"writers", std::move(writers)},
          {"rules", std::move(rules)}};
}

json plan(const std::string& library, json nodes) {
  return {{"protocol", 1},
          {"cell", "test"},
          {"trial", 0},
          {"standalone", true},
          {"worker", {{"index", 0}, {"name", "test"}}},
          {"phases",
           {{"discovery_timeout_ns", 10'000 * kMillisecond_ns},
            {"warmup_ns", 20 * kMillisecond_ns},
            {"measure_ns", 100 * kMillisecond_ns},
            {"drain_ns", 40 * kMillisecond_ns}}},
          {"scheduling", {{"policy", "other"}, {"priority", 0}, {"cpus", json::array()}, {"lock_memory", false}}},
          {"runtime_directory", runtime_directory().string()},
          {"touch", "write+read"},
          {"adapters",
           {{{"name", "test"},
             {"library", library},
             {"profile", "default"},
             {"options", json::object()},
             {"environment", json::object()},
             {"network", json::object()}}}},
          {"contexts", {{{"adapter", 0}, {"domain", 0}, {"name", "test"}}}},
          {"nodes", std::move(nodes)}};
}

json pipeline_plan(const std::string& library, const std::string& dispatch) {
  json nodes = {node("source", 0, json::array(), {writer("t0", 0)}, {timer(2 * kMillisecond_ns, {}, {0})}),
                node("relay", 1, {reader("t0", {0})}, {writer("t1", 1)}, {on_message("any", {0}, {0})}),
                node("sink", 2, {reader("t1", {1})}, json::array(), {on_message("any", {0}, {})})};
  for (json& each : nodes) each["dispatch"] = dispatch;
  return plan(library, std::move(nodes));
}

std::vector<SentRecord> Recorded::sent(uint32_t node, uint32_t stream) const {
  return records_of<SentRecord>(*this, LaneKind::sent, node, stream);
}
std::vector<ReceivedRecord> Recorded::received(uint32_t node, uint32_t reader) const {
  return records_of<ReceivedRecord>(*this, LaneKind::received, node, reader);
}
std::vector<CauseRecord> Recorded::causes(uint32_t node, uint32_t stream) const {
  return records_of<CauseRecord>(*this, LaneKind::causes, node, stream);
}

Recorded decode(std::span<const std::byte> block) {
  Recorded result;
  RecordsHeader header{};
  std::memcpy(&header, block.data(), sizeof header);
  EXPECT_EQ(header.magic, kRecordsMagic);
  EXPECT_EQ(header.total_bytes, block.size());
  for (uint32_t index = 0; index < header.lane_count; ++index) {
    LaneHeader lane{};
    std::memcpy(&lane, block.data() + sizeof header + index * sizeof lane, sizeof lane);
    const Recorded::Key key{static_cast<LaneKind>(lane.kind), lane.node, lane.endpoint};
    EXPECT_FALSE(result.lanes.contains(key)) << "two lanes of one endpoint";
    result.lanes[key] = lane.page_bytes == 0 ? side_by_side(block, lane) : in_pages(block, lane);
    result.full[key] = (lane.flags & kLaneFull) != 0;
  }
  return result;
}

void match(Session& session, int64_t deadline_ns, size_t unmatched) {
  while (session.missing().size() > unmatched) {
    if (now_ns() > deadline_ns) throw std::runtime_error("not matched: " + session.missing().dump());
    session.look_for_readers(true);
    sleep_until(now_ns() + kMillisecond_ns / 2);
  }
}

Recorded run_trial(const json& given, uint64_t received) {
  const Plan plan = parse_plan(given.dump());
  Session session(plan, -1);
  match(session, now_ns() + plan.discovery_timeout_ns);
  const int64_t start_ns = now_ns() + kMillisecond_ns;
  const int64_t end_ns = start_ns + plan.warmup_ns + plan.measure_ns;
  session.start(start_ns, end_ns);
  if (received == 0) sleep_until(end_ns + plan.drain_ns);
  const int64_t patience_ns = now_ns() + 20'000 * kMillisecond_ns;
  while (session.recorder().count(LaneKind::received) < received && now_ns() < patience_ns)
    sleep_until(now_ns() + kMillisecond_ns);
  session.stop();
  if (const std::string text = session.failure(); !text.empty()) throw std::runtime_error(text);
  Recorded recorded = decode(session.recorder().packed());
  recorded.start_ns = start_ns;
  recorded.writers = session.describe_writers();
  recorded.warnings = session.warnings();
  recorded.readers = session.describe_readers();
  return recorded;
}

}  // namespace lagometer::test
