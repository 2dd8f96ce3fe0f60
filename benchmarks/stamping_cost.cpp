// SPDX-License-Identifier: Apache-2.0
// What measuring adds to a message, per side: CPU numbers and the record kept, beyond the clock reads.
//
// The judged rows compare two versions of the same message. Bare: an application's own state of its publisher or
// subscription (handle, sequence, counts) in a page of its own, and the clock reads. Measured: the same state at the
// head of the page that holds the records, the clock reads, the CPU numbers, the record, the turn to a new page every
// 63 messages. Both pages lie in one mapping, since a page's neighbours decide what its translation costs; the code of
// both lies in one page for the same reason. For information: the measured message against clock reads that touch no
// state at all, and the engine's whole path (envelope, rules, counting) against the same calls made by hand, over an
// adapter that does nothing.
//
// Tight: in a loop. Cold: one at a time at 2 kHz, after every cache line of 4 MB was written, in random order, with the
// objects at several addresses (where they happen to lie decides what their pages cost). The mean is over all
// messages but those above 10 µs, which an interrupt hit. Prints one JSON object.
#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
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

WriterPlan source_plan() {
  WriterPlan plan;
  plan.payload_bytes = kPayloadBytes;
  return plan;
}

constexpr TouchPlan kTouch{.write = false, .read = true};

/// All that a message of either version needs, at addresses of its own.
struct Layout {
  explicit Layout(uint64_t capacity)
      : lanes{LaneSpecification{LaneKind::sent, 0, 0, capacity},     LaneSpecification{LaneKind::causes, 0, 0, 0},
              LaneSpecification{LaneKind::received, 1, 0, capacity}, LaneSpecification{LaneKind::sent, 0, 1, capacity},
              LaneSpecification{LaneKind::received, 1, 1, capacity}, LaneSpecification{LaneKind::sent, 0, 2, capacity},
              LaneSpecification{LaneKind::received, 1, 2, capacity}, LaneSpecification{LaneKind::sent, 0, 3, capacity},
              LaneSpecification{LaneKind::received, 1, 3, capacity}},
        node(sink_plan(capacity), stage, failure) {
    stage.start_ns = 1;
    input = &node.inputs.emplace_back(node.plan().readers[0], 0, *opaque_table, kTouch, failure);
    node.prepare(nullptr, nullptr);
    output.record_into(recorder.sent(0), recorder.causes(1));
    input->record_into(recorder.received(2));
    sent.state().cpu_source = received.state().cpu_source = best_cpu_source();
  }
  [[nodiscard]] bool full() const {
    return output.recorder_full() || input->recorder_full() || sent.full() || received.full();
  }

  lagometer_sample sample{};
  FailureFlag failure;
  Stage stage;
  std::array<LaneSpecification, 9> lanes;
  Recorder recorder{0, lanes, -1};
  Output output{source_plan(), *opaque_table, kTouch, failure};
  Node node;
  Input* input = nullptr;
  SentLane sent = recorder.sent(3);
  ReceivedLane received = recorder.received(4);
  // An application's own state, at the same kind of address; nothing is ever recorded here. Each version has its own,
  // so that all pages are used equally often: one that is used more often is warmer.
  SentLane publisher = recorder.sent(5);
  ReceivedLane subscription = recorder.received(6);
  SentLane plain_publisher = recorder.sent(7);
  ReceivedLane plain_subscription = recorder.received(8);
};

// The code of all versions lies in one page: as little as data should it depend on the linker which of them pays for a
// translation. In the engine, measuring is inlined into the code that sends and takes.
#define MESSAGE [[gnu::noinline, gnu::section("messages")]]
asm(".pushsection messages,\"ax\",@progbits\n.p2align 12\n.popsection");  // begins a page
extern "C" const char __start_messages[], __stop_messages[];

MESSAGE void one_clock_read(Layout&) { kept = now_ns(); }
MESSAGE void two_clock_reads(Layout&) {
  kept = now_ns();
  kept = now_ns();
}
MESSAGE void three_clock_reads(Layout&) {
  kept = now_ns();
  kept = now_ns();
  kept = now_ns();
}

MESSAGE void bare_send(Layout& layout) {
  SendState& publisher = layout.publisher.state();
  ++publisher.next_sequence;
  kept = reinterpret_cast<intptr_t>(publisher.writer);
  kept = now_ns();
  kept = now_ns();
  ++publisher.sent;
}

MESSAGE void measured_send(Layout& layout) {
  SentLane& lane = layout.sent;
  SendState& state = lane.state();
  const CpuSource cpu = state.cpu_source;
  const uint64_t sequence = state.next_sequence++;
  kept = reinterpret_cast<intptr_t>(state.writer);
  const int64_t publish_ns = now_ns();
  const uint16_t cpu_publish = current_cpu(cpu);
  const int64_t published_ns = now_ns();
  const uint16_t cpu_published = current_cpu(cpu);
  ++state.sent;
  SentRecord* const record = lane.claim();
  if (record == nullptr) return;
  record->sequence = sequence;
  record->publish_ns = publish_ns;
  record->published_ns = published_ns;
  record->cpu_publish = cpu_publish;
  record->cpu_published = cpu_published;
  lane.keep();
}

MESSAGE void bare_receive(Layout& layout) {
  kept = now_ns();
  ReceiveState& subscription = layout.subscription.state();
  kept = reinterpret_cast<intptr_t>(subscription.reader);
  kept = now_ns();
  ++subscription.received;
  kept = now_ns();
}

MESSAGE void measured_receive(Layout& layout) {
  const int64_t signalled_ns = now_ns();
  ReceivedLane& lane = layout.received;
  ReceiveState& state = lane.state();
  const CpuSource cpu = state.cpu_source;
  const uint16_t cpu_signalled = current_cpu(cpu);
  kept = reinterpret_cast<intptr_t>(state.reader);
  const int64_t taken_ns = now_ns();
  const uint16_t cpu_taken = current_cpu(cpu);
  const uint64_t sequence = state.received++;
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

/// What an application does to send, by hand, and the two clock reads of the sender.
MESSAGE void plain_send(Layout& layout) {
  const lagometer_adapter_table& table = *opaque_table;
  SendState& publisher = layout.plain_publisher.state();
  lagometer_message message{};
  message.size = sizeof message;
  table.borrow(publisher.writer, kPayloadBytes, &message);
  write_envelope(message.regions[0].data, Envelope{.sequence = ++publisher.next_sequence});
  const int64_t before = now_ns();
  table.commit(publisher.writer, &message);
  kept = now_ns() - before;
  ++publisher.sent;
}
MESSAGE void engine_send(Layout& layout) { layout.output.publish(1, {}); }

/// Likewise for the receiver in a listener: signalled, taken, handled.
MESSAGE void plain_receive(Layout& layout) {
  waiting = true;
  const lagometer_adapter_table& table = *opaque_table;
  const int64_t signalled = now_ns();
  ReceiveState& subscription = layout.plain_subscription.state();
  lagometer_sample& sample = layout.sample;
  uint32_t taken = 0;
  table.take(subscription.reader, &sample, sizeof sample, 1, &taken);
  const int64_t at = now_ns();
  kept = static_cast<int64_t>(touch_read(sample.regions[0].data, sample.regions[0].size)) + at - signalled;
  ++subscription.received;
  kept = now_ns();
  table.release(subscription.reader, &sample, sizeof sample, taken);
}
MESSAGE void engine_receive(Layout& layout) {
  waiting = true;
  layout.node.on_data(*layout.input);
}

enum : size_t { kClock, kClocks2, kClocks3, kBareSend, kSend, kBareReceive, kReceive, kPlainSend, kWholeSend };
enum : size_t { kPlainReceive = kWholeSend + 1, kWholeReceive, kVersions };
constexpr std::array<void (*)(Layout&), kVersions> kVersion = {
    one_clock_read,   two_clock_reads, three_clock_reads, bare_send,     measured_send, bare_receive,
    measured_receive, plain_send,      engine_send,       plain_receive, engine_receive};

using Times = std::array<std::vector<double>, kVersions>;

/// Nanoseconds per call in a tight loop, in rounds that take the versions in turns.
Times tight(int rounds, int calls, bool& full) {
  Layout layout(static_cast<uint64_t>(rounds) * static_cast<uint64_t>(calls));
  Times times;
  for (int round = 0; round < rounds; ++round) {
    for (size_t index = 0; index < kVersions; ++index) {
      const int64_t begin = now_ns();
      for (int call = 0; call < calls; ++call) kVersion[index](layout);
      times[index].push_back(static_cast<double>(now_ns() - begin) / calls);
    }
  }
  full = full || layout.full();
  return times;
}

/// Nanoseconds of single calls at 2 kHz, each after 4 MB of other memory were touched.
Times cold(int layouts, int rounds, bool& full) {
  constexpr int64_t kPeriod_ns = 500'000;
  std::vector<uint8_t> other(size_t{4} << 20);
  std::minstd_rand random(1);
  std::vector<std::unique_ptr<Layout>> all;  // kept, so that each lies elsewhere
  Times times;
  Parker parker;
  std::array<size_t, kVersions> order;
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t due = now_ns();
  for (int index = 0; index < layouts; ++index) {
    Layout& layout = *all.emplace_back(std::make_unique<Layout>(static_cast<uint64_t>(rounds)));
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const size_t version : order) {
        due = std::max(due + kPeriod_ns, now_ns());
        parker.wait_until(due);
        touch_write(other.data(), other.size(), 0, static_cast<uint64_t>(round));
        const int64_t begin = now_ns();
        kVersion[version](layout);
        times[version].push_back(static_cast<double>(now_ns() - begin));
      }
    }
    full = full || layout.full();
  }
  return times;
}

struct Figure {
  double median = 0;
  double mean = 0;  // of those that no interrupt hit
  size_t interrupted = 0;
};

Figure figure(std::vector<double>& values) {
  constexpr double kInterrupted_ns = 10'000;
  std::sort(values.begin(), values.end());
  const auto end = std::upper_bound(values.begin(), values.end(), kInterrupted_ns);
  const auto whole = static_cast<double>(end - values.begin());
  return {.median = values[values.size() / 2],
          .mean = whole > 0 ? std::accumulate(values.begin(), end, 0.0) / whole : kInterrupted_ns,
          .interrupted = static_cast<size_t>(values.end() - end)};
}

nlohmann::json rows_of(Times times) {
  const auto row = [&](const char* what, bool judged, size_t bare, size_t measured) {
    const Figure without = figure(times[bare]);
    const Figure with = figure(times[measured]);
    return nlohmann::json{{"what", what},
                          {"judged", judged},
                          {"bare_mean_ns", without.mean},
                          {"bare_median_ns", without.median},
                          {"measured_mean_ns", with.mean},
                          {"measured_median_ns", with.median},
                          {"added_mean_ns", with.mean - without.mean},
                          {"added_median_ns", with.median - without.median},
                          {"messages", times[measured].size()},
                          {"interrupted", with.interrupted}};
  };
  const Figure clock = figure(times[kClock]);
  return {{"clock_read_ns", clock.median},
          {"rows",
           {row("send: stamps and record", true, kBareSend, kSend),
            row("receive: stamps and record", true, kBareReceive, kReceive),
            row("send: against clock reads alone", false, kClocks2, kSend),
            row("receive: against clock reads alone", false, kClocks3, kReceive),
            row("send: whole path", false, kPlainSend, kWholeSend),
            row("receive: whole path", false, kPlainReceive, kWholeReceive)}}};
}

}  // namespace

int main(int count, char** arguments) {
  const bool smoke = count > 1 && std::string(arguments[1]) == "--smoke";
  const lagometer_adapter_table table = make_table();
  opaque_table = &table;
  bool full = false;
  if (__stop_messages - __start_messages > static_cast<std::ptrdiff_t>(kPageBytes)) {
    std::fputs("the code of the messages does not fit into one page: the figures would depend on the linker\n", stderr);
    return 1;
  }
  const nlohmann::json hot = rows_of(tight(smoke ? 5 : 400, 2000, full));
  const nlohmann::json idle = rows_of(cold(smoke ? 1 : 16, smoke ? 20 : 1000, full));
  std::puts(nlohmann::json{{"tight", hot}, {"cold", idle}, {"recorder_full", full}}.dump().c_str());
  return full ? 1 : 0;
}
