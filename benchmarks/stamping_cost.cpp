// SPDX-License-Identifier: Apache-2.0
// What measuring adds to a message, per side: stamps with their CPU numbers and the record kept, against the bare clock
// reads. Beside it, for information, the engine's whole path (envelope, rules, counting) against the same calls made by
// hand, over an adapter that does nothing. All are timed in turns. Prints one JSON object.
#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "clock.hpp"
#include "endpoint.hpp"
#include "node.hpp"
#include "recorder.hpp"

namespace {

using namespace lagometer::engine;

constexpr uint64_t kPayloadBytes = 64;
alignas(64) std::array<uint8_t, kPayloadBytes> payload{};
bool waiting = false;  // one message that take() will hand out

lagometer_status borrow(lagometer_writer*, uint64_t bytes, lagometer_message* message) noexcept {
  message->origin = LAGOMETER_ORIGIN_LOANED;
  message->region_count = 1;
  message->regions[0] = {payload.data(), bytes};
  return LAGOMETER_OK;
}
lagometer_status commit(lagometer_writer*, lagometer_message*) noexcept { return LAGOMETER_OK; }
lagometer_status take(lagometer_reader*, lagometer_sample* samples, uint32_t, uint32_t, uint32_t* taken) noexcept {
  *taken = waiting ? 1 : 0;
  waiting = false;
  samples->region_count = 1;
  samples->regions[0] = {payload.data(), payload.size()};
  return LAGOMETER_OK;
}
void release(lagometer_reader*, lagometer_sample*, uint32_t, uint32_t) noexcept {}

lagometer_adapter_table make_table() {
  lagometer_adapter_table table{};
  table.size = sizeof table;
  table.borrow = borrow;
  table.commit = commit;
  table.take = take;
  table.release = release;
  return table;
}

/// The functions are called through a table that the compiler can't see through, as in a worker.
const lagometer_adapter_table* volatile opaque_table = nullptr;
volatile int64_t kept = 0;

/// The same work without measuring: what an application does, and the two clock reads of the sender.
void plain_send() {
  const lagometer_adapter_table& table = *opaque_table;
  lagometer_message message{};
  message.size = sizeof message;
  table.borrow(nullptr, kPayloadBytes, &message);
  write_envelope(message.regions[0].data, Envelope{});
  const int64_t before = now_ns();
  table.commit(nullptr, &message);
  kept = now_ns() - before;
}

/// Likewise for the receiver in a listener: signalled, taken, handled.
void plain_receive(lagometer_sample& sample) {
  const lagometer_adapter_table& table = *opaque_table;
  const int64_t signalled = now_ns();
  uint32_t taken = 0;
  table.take(nullptr, &sample, sizeof sample, 1, &taken);
  const int64_t at = now_ns();
  kept = static_cast<int64_t>(touch_read(sample.regions[0].data, sample.regions[0].size)) + at - signalled;
  kept = now_ns();
  table.release(nullptr, &sample, sizeof sample, taken);
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Nanoseconds per call of each function, in a tight loop: the median over rounds that take the functions in turns.
std::vector<double> tight(const std::vector<std::function<void(int)>>& loops, int rounds, int calls) {
  std::vector<std::vector<double>> times(loops.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t index = 0; index < loops.size(); ++index) {
      const int64_t begin = now_ns();
      loops[index](calls);
      times[index].push_back(static_cast<double>(now_ns() - begin) / calls);
    }
  }
  std::vector<double> result;
  for (auto& each : times) result.push_back(median(each));
  return result;
}

/// Nanoseconds of a single call of each function at 2 kHz, after 4 MB of other memory were touched.
std::vector<double> cold(const std::vector<std::function<void(int)>>& loops, int rounds) {
  constexpr int64_t kPeriod_ns = 500'000;
  std::vector<uint8_t> other(size_t{4} << 20);
  std::vector<std::vector<double>> times(loops.size());
  Parker parker;
  int64_t due = now_ns();
  for (int round = 0; round < rounds; ++round) {
    for (size_t index = 0; index < loops.size(); ++index) {
      due = std::max(due + kPeriod_ns, now_ns());
      parker.wait_until(due);
      touch_write(other.data(), other.size(), 0, static_cast<uint64_t>(round));
      const int64_t begin = now_ns();
      loops[index](1);
      times[index].push_back(static_cast<double>(now_ns() - begin));
    }
  }
  std::vector<double> result;
  for (auto& each : times) result.push_back(median(each));
  return result;
}

NodePlan sink_plan(uint64_t capacity) {
  NodePlan plan;
  plan.name = "sink";
  plan.dispatch = Dispatch::listener;
  ReaderPlan reader;
  reader.payload_bytes = kPayloadBytes;
  reader.capacity = capacity;
  plan.readers.push_back(reader);
  RulePlan rule;
  rule.readers = {0};
  plan.rules.push_back(rule);
  return plan;
}

// As the engine does it: stamps in registers while the message is on its way, the record afterwards.
void stamp_send(Lane<SentRecord>& lane, uint64_t sequence) {
  const int64_t publish_ns = now_ns();
  const uint16_t cpu_publish = current_cpu();
  const int64_t published_ns = now_ns();
  const uint16_t cpu_published = current_cpu();
  SentRecord* const record = lane.claim();
  if (record == nullptr) return;
  record->sequence = sequence;
  record->publish_ns = publish_ns;
  record->published_ns = published_ns;
  record->cpu_publish = cpu_publish;
  record->cpu_published = cpu_published;
  lane.keep();
}

void stamp_receive(Lane<ReceivedRecord>& lane, uint64_t sequence) {
  const int64_t signalled_ns = now_ns();
  const uint16_t cpu_signalled = current_cpu();
  const int64_t taken_ns = now_ns();
  const uint16_t cpu_taken = current_cpu();
  const int64_t handled_ns = now_ns();
  ReceivedRecord* const record = lane.claim();
  if (record == nullptr) return;
  record->sequence = sequence;
  record->signalled_ns = signalled_ns;
  record->cpu_signalled = cpu_signalled;
  record->taken_ns = taken_ns;
  record->cpu_taken = cpu_taken;
  record->handled_ns = handled_ns;
  lane.keep();
}

/// `calls` times `work`, as something that tight() and cold() can take.
template <typename Work>
std::function<void(int)> repeated(Work work) {
  return [work](int calls) {
    for (int i = 0; i < calls; ++i) work();
  };
}

nlohmann::json rows_of(const std::vector<double>& times) {
  const auto row = [&](const char* what, size_t bare, size_t measured) {
    return nlohmann::json{{"what", what},
                          {"bare_ns", times[bare]},
                          {"measured_ns", times[measured]},
                          {"added_ns", times[measured] - times[bare]}};
  };
  return {{"clock_read_ns", times[0]},
          {"rows",
           {row("send: stamps and record", 1, 3), row("receive: stamps and record", 2, 4),
            row("send: whole path", 5, 6), row("receive: whole path", 7, 8)}}};
}

}  // namespace

int main(int count, char** arguments) {
  const bool smoke = count > 1 && std::string(arguments[1]) == "--smoke";
  const int rounds = smoke ? 5 : 400;
  constexpr int kCalls = 2000;
  const uint64_t capacity = static_cast<uint64_t>(rounds) * (kCalls + 1) * 2;
  const lagometer_adapter_table table = make_table();
  opaque_table = &table;

  FailureFlag failure;
  Stage stage;
  stage.start_ns = 1;
  WriterPlan writer;
  writer.payload_bytes = kPayloadBytes;
  constexpr TouchPlan kTouch{.write = false, .read = true};
  Output output(writer, table, kTouch, failure);
  Node node(sink_plan(capacity), stage, failure);
  Input& input = node.inputs.emplace_back(node.plan().readers[0], 0, table, kTouch, failure);
  node.prepare(nullptr, nullptr);
  const std::array lanes = {
      LaneSpecification{LaneKind::sent, 0, 0, capacity}, LaneSpecification{LaneKind::causes, 0, 0, 0},
      LaneSpecification{LaneKind::received, 1, 0, capacity}, LaneSpecification{LaneKind::sent, 0, 1, capacity},
      LaneSpecification{LaneKind::received, 1, 1, capacity}};
  const Recorder recorder(0, lanes, -1);
  output.record_into(recorder.sent(0), recorder.causes(1));
  input.record_into(recorder.received(2));
  Lane<SentRecord> sent = recorder.sent(3);
  Lane<ReceivedRecord> received = recorder.received(4);
  uint64_t sequence = 0;
  lagometer_sample sample{};

  const auto clock_reads = [](int reads) {
    for (int i = 0; i < reads; ++i) kept = now_ns();
  };
  const std::vector<std::function<void(int)>> loops = {repeated([&] { clock_reads(1); }),
                                                       repeated([&] { clock_reads(2); }),
                                                       repeated([&] { clock_reads(3); }),
                                                       repeated([&] { stamp_send(sent, ++sequence); }),
                                                       repeated([&] { stamp_receive(received, ++sequence); }),
                                                       repeated([] { plain_send(); }),
                                                       repeated([&] { output.publish(1, {}); }),
                                                       repeated([&] {
                                                         waiting = true;
                                                         plain_receive(sample);
                                                       }),
                                                       repeated([&] {
                                                         waiting = true;
                                                         node.on_data(input);
                                                       })};
  const nlohmann::json hot = rows_of(tight(loops, rounds, kCalls));
  const nlohmann::json idle = rows_of(cold(loops, smoke ? 20 : 2000));
  const bool full = output.recorder_full() || input.recorder_full() || sent.full() || received.full();
  std::puts(nlohmann::json{{"tight", hot}, {"cold", idle}, {"recorder_full", full}}.dump().c_str());
  return full ? 1 : 0;
}
