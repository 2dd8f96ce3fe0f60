// SPDX-License-Identifier: Apache-2.0
// The cost of measuring a message, per side: CPU numbers and the stored record, in addition to the clock reads.
//
// The judged rows compare two versions of the same message. Bare: an application's own state of its publisher or
// subscription (handle, sequence, counts) in its own page, and the clock reads. Measured: the same state at the head
// of the page that holds the records, the clock reads, the CPU numbers, the record, the switch to a new page every
// 63 messages. Both pages are in one mapping, since a page's neighbours determine the cost of its translation. For
// information: the measured message against clock reads that touch no state at all, and the engine's whole path
// (envelope, rules, counting) against the same calls made by hand, over an adapter that does nothing.
//
// Tight: in a loop. Cold: one at a time at 2 kHz, after every cache line of 4 MB was written, in random order. Then the
// placement of code and data matters more than the compared code: the same code on another page, or elsewhere in its
// own, differs by up to 70 ns. So the pages take every place in turn, and the code exists in copies elsewhere; a
// figure is the mean over the placements of the difference within one, with its standard error. The mean within a
// placement is over all messages except those above 10 µs, which an interrupt hit. Prints one JSON object.
#include <algorithm>
#include <array>
#include <cmath>
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

/// The functions are called through a table that is opaque to the compiler, as in a worker.
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

/// The users of the recorder's lanes. Each version has its own lane, so that all pages are used equally often: one that
/// is used more often is warmer. An application's own lane never records anything.
enum class Role : uint8_t {
  output,
  input,
  sent,
  received,
  publisher,
  subscription,
  plain_publisher,
  plain_subscription
};
constexpr size_t kRoles = 8;
using Places = std::array<Role, kRoles>;
constexpr Places kInOrder = {Role::output,
                             Role::input,
                             Role::sent,
                             Role::received,
                             Role::publisher,
                             Role::subscription,
                             Role::plain_publisher,
                             Role::plain_subscription};

std::vector<LaneSpecification> lanes_of(const Places& places, uint64_t capacity) {
  std::vector<LaneSpecification> lanes;
  for (const Role role : places) {
    const bool sends =
        role == Role::output || role == Role::sent || role == Role::publisher || role == Role::plain_publisher;
    lanes.push_back(
        {sends ? LaneKind::sent : LaneKind::received, sends ? 0U : 1U, static_cast<uint32_t>(lanes.size()), capacity});
  }
  lanes.push_back({LaneKind::causes, 0, 0, 0});
  return lanes;
}

/// Everything that a message of either version needs, at separate addresses.
struct Layout {
  Layout(const Places& order, uint64_t capacity)
      : places(order), lanes(lanes_of(order, capacity)), node(sink_plan(capacity), stage, failure) {
    stage.start_ns = 1;
    input = &node.inputs.emplace_back(node.plan().readers[0], 0, *opaque_table, kTouch, failure);
    node.prepare();
    output.record_into(recorder.sent(lane(Role::output)), recorder.causes(kRoles));
    input->record_into(recorder.received(lane(Role::input)));
    sent.state().cpu_source = received.state().cpu_source = best_cpu_source();
  }
  [[nodiscard]] size_t lane(Role role) const {
    return static_cast<size_t>(std::find(places.begin(), places.end(), role) - places.begin());
  }
  [[nodiscard]] bool full() const {
    return output.recorder_full() || input->recorder_full() || sent.full() || received.full();
  }

  Places places;
  lagometer_sample sample{};
  FailureFlag failure;
  Stage stage;
  std::vector<LaneSpecification> lanes;
  Recorder recorder{0, lanes, -1};
  Output output{source_plan(), *opaque_table, kTouch, failure};
  Node node;
  Input* input = nullptr;
  SentLane sent = recorder.sent(lane(Role::sent));
  ReceivedLane received = recorder.received(lane(Role::received));
  SentLane publisher = recorder.sent(lane(Role::publisher));
  ReceivedLane subscription = recorder.received(lane(Role::subscription));
  SentLane plain_publisher = recorder.sent(lane(Role::plain_publisher));
  ReceivedLane plain_subscription = recorder.received(lane(Role::plain_subscription));
};

// The code of what is compared is in one page, so that the linker does not decide which pays for a translation.
// In the engine, measuring is inlined into the code that sends and takes.
#if __has_cpp_attribute(gnu::no_reorder)
#define IN_ORDER [[gnu::no_reorder]]
#else
#define IN_ORDER
#endif
#define MESSAGE_IN(page) IN_ORDER [[gnu::noinline, gnu::aligned(64), gnu::section(page)]]
#define MESSAGE MESSAGE_IN("messages")
#define BODY [[gnu::always_inline]] inline
#define PAGE(name, lines) /* which begins with so many empty cache lines */                        \
  asm(".pushsection " #name ",\"ax\",@progbits\n.p2align 12\n.skip 64 * " #lines "\n.popsection"); \
  extern "C" const char __start_##name[], __stop_##name[];
PAGE(messages, 0)

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

BODY void bare_send(Layout& layout) {
  SendState& publisher = layout.publisher.state();
  ++publisher.next_sequence;
  kept = reinterpret_cast<intptr_t>(publisher.writer);
  kept = now_ns();
  kept = now_ns();
  ++publisher.sent;
}

BODY void measured_send(Layout& layout) {
  SentLane& lane = layout.sent;
  SendState& state = lane.state();
  const CpuSource cpu = state.cpu_source;
  const uint64_t sequence = state.next_sequence++;
  kept = reinterpret_cast<intptr_t>(state.writer);
  const Stamp publish = stamp_now(cpu);
  const Stamp published = stamp_now(cpu);
  ++state.sent;
  SentRecord* const record = lane.claim();
  if (record == nullptr) return;
  record->sequence = sequence;
  record->publish_ns = publish.time_ns;
  record->published_ns = published.time_ns;
  record->cpu_publish = publish.cpu;
  record->cpu_published = published.cpu;
  lane.keep();
}

BODY void bare_receive(Layout& layout) {
  kept = now_ns();
  ReceiveState& subscription = layout.subscription.state();
  kept = reinterpret_cast<intptr_t>(subscription.reader);
  kept = now_ns();
  ++subscription.received;
  kept = now_ns();
}

BODY void measured_receive(Layout& layout) {
  const int64_t signalled_ns = now_ns();
  ReceivedLane& lane = layout.received;
  ReceiveState& state = lane.state();
  const CpuSource cpu = state.cpu_source;
  const uint16_t cpu_signalled = current_cpu(cpu);
  kept = reinterpret_cast<intptr_t>(state.reader);
  const Stamp taken = stamp_now(cpu);
  const uint64_t sequence = state.received++;
  const int64_t handled_ns = now_ns();
  ReceivedRecord* const record = lane.claim();
  if (record == nullptr) return;
  record->sequence = sequence;
  record->signalled_ns = signalled_ns;
  record->cpu_signalled = cpu_signalled;
  record->taken_ns = taken.time_ns;
  record->cpu_taken = taken.cpu;
  record->handled_ns = handled_ns;
  lane.keep();
}

// The code's place within its page has as much effect as the difference to measure: several copies of each, in pages of
// their own. They begin at even and at odd lines, which some processors fetch in pairs, and either version comes first.
#define BARE(number)                                                                            \
  MESSAGE_IN("messages" #number) void bare_send_##number(Layout& layout) { bare_send(layout); } \
  MESSAGE_IN("messages" #number) void bare_receive_##number(Layout& layout) { bare_receive(layout); }
#define MEASURED(number)                                                                                \
  MESSAGE_IN("messages" #number) void measured_send_##number(Layout& layout) { measured_send(layout); } \
  MESSAGE_IN("messages" #number) void measured_receive_##number(Layout& layout) { measured_receive(layout); }
#define COPY(number, first, second) PAGE(messages##number, number) first(number) second(number)
COPY(0, BARE, MEASURED)
COPY(1, BARE, MEASURED)
COPY(2, MEASURED, BARE)
COPY(3, MEASURED, BARE)
COPY(4, BARE, MEASURED)
COPY(5, BARE, MEASURED)
COPY(6, MEASURED, BARE)
COPY(7, MEASURED, BARE)
#define COPIES(each) each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7)

struct CodePage {
  const char* begin;
  const char* end;
};
#define BORDERS(number) CodePage{__start_messages##number, __stop_messages##number},
constexpr std::array kCodePages = {COPIES(BORDERS) CodePage{__start_messages, __stop_messages}};

/// What an application does to send, by hand, with the sender's two clock reads.
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
MESSAGE void engine_send(Layout& layout) { layout.output.publish({.intended_ns = 1, .begun_ns = 1}); }

/// The same for the receiver in a listener: signalled, taken, handled.
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
using Versions = std::array<void (*)(Layout&), kVersions>;
#define VERSIONS(number)                                                                                               \
  Versions{                                                                                                            \
      one_clock_read,        two_clock_reads,           three_clock_reads, bare_send_##number, measured_send_##number, \
      bare_receive_##number, measured_receive_##number, plain_send,        engine_send,        plain_receive,          \
      engine_receive},
constexpr std::array kCopies = {COPIES(VERSIONS)};

/// The times of one placement, per version: nanoseconds of each call, or of each round of calls.
using Times = std::array<std::vector<double>, kVersions>;

/// Nanoseconds per call in a tight loop, in rounds that alternate between the versions.
Times tight(int rounds, int calls, bool& full) {
  Layout layout(kInOrder, static_cast<uint64_t>(rounds) * static_cast<uint64_t>(calls));
  Times times;
  for (int round = 0; round < rounds; ++round) {
    for (size_t index = 0; index < kVersions; ++index) {
      const int64_t begin = now_ns();
      for (int call = 0; call < calls; ++call) kCopies[0][index](layout);
      times[index].push_back(static_cast<double>(now_ns() - begin) / calls);
    }
  }
  full = full || layout.full();
  return times;
}

/// Nanoseconds of single calls at 2 kHz, each after touching 4 MB of other memory: one element per placement.
std::vector<Times> cold(size_t placements, int rounds, bool& full) {
  constexpr int64_t kPeriod_ns = 500'000;
  std::vector<uint8_t> other(size_t{4} << 20);
  std::minstd_rand random(1);
  std::vector<std::unique_ptr<Layout>> all;  // kept, so that each has a different address
  std::vector<Times> times(placements);
  Parker parker;
  std::array<size_t, kVersions> order;
  std::iota(order.begin(), order.end(), size_t{0});
  Places places = kInOrder;
  int64_t due = now_ns();
  for (size_t placement = 0; placement < placements; ++placement) {
    if (placement % 2 == 0) {
      std::shuffle(places.begin(), places.end(), random);
    } else {
      std::reverse(places.begin(), places.end());  // reverses the order: no role gains by its place
    }
    Layout& layout = *all.emplace_back(std::make_unique<Layout>(places, static_cast<uint64_t>(rounds)));
    for (int round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), random);
      for (const size_t version : order) {
        due = std::max(due + kPeriod_ns, now_ns());
        parker.wait_until(due);
        touch_write(other.data(), other.size(), 0, static_cast<uint64_t>(round));
        const int64_t begin = now_ns();
        kCopies[placement / 2 % kCopies.size()][version](layout);
        times[placement][version].push_back(static_cast<double>(now_ns() - begin));
      }
    }
    full = full || layout.full();
  }
  return times;
}

struct Figure {
  double median = 0;
  double mean = 0;  // of those without an interrupt
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

struct Mean {
  double value = 0;
  double standard_error = 0;  // 0 for a single value
};

Mean mean_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Mean mean{.value = std::accumulate(values.begin(), values.end(), 0.0) / n};
  if (values.size() < 2) return mean;
  double squares = 0;
  for (const double value : values) squares += (value - mean.value) * (value - mean.value);
  mean.standard_error = std::sqrt(squares / (n - 1) / n);
  return mean;
}

/// One comparison: what `measured` costs in addition to `bare`, over all placements.
nlohmann::json row_of(const char* what, bool judged, std::vector<Times>& placements, size_t bare, size_t measured) {
  std::vector<double> bare_mean_ns, measured_mean_ns, added_mean_ns, added_median_ns;
  size_t messages = 0, interrupted = 0;
  for (Times& times : placements) {
    const Figure without = figure(times[bare]);
    const Figure with = figure(times[measured]);
    bare_mean_ns.push_back(without.mean);
    measured_mean_ns.push_back(with.mean);
    added_mean_ns.push_back(with.mean - without.mean);
    added_median_ns.push_back(with.median - without.median);
    messages += times[measured].size();
    interrupted += with.interrupted;
  }
  const Mean mean = mean_of(added_mean_ns);
  const Mean median = mean_of(added_median_ns);
  return {{"what", what},
          {"judged", judged},
          {"bare_mean_ns", mean_of(bare_mean_ns).value},
          {"measured_mean_ns", mean_of(measured_mean_ns).value},
          {"added_mean_ns", mean.value},
          {"added_mean_error_ns", mean.standard_error},
          {"added_median_ns", median.value},
          {"added_median_error_ns", median.standard_error},
          {"placements", placements.size()},
          {"messages", messages},
          {"interrupted", interrupted}};
}

nlohmann::json rows_of(std::vector<Times> placements) {
  std::vector<double> clock_read_ns;
  for (Times& times : placements) clock_read_ns.push_back(figure(times[kClock]).median);
  const auto row = [&](const char* what, bool judged, size_t bare, size_t measured) {
    return row_of(what, judged, placements, bare, measured);
  };
  return {{"clock_read_ns", mean_of(clock_read_ns).value},
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
  for (const auto& [begin, end] : kCodePages) {
    if (end - begin <= static_cast<std::ptrdiff_t>(kPageBytes)) continue;
    std::fputs("the code of the messages does not fit into one page: the figures would depend on the linker\n", stderr);
    return 1;
  }
  const nlohmann::json hot = rows_of({tight(smoke ? 5 : 400, 2000, full)});
  const nlohmann::json idle = rows_of(cold(smoke ? 2 : 192, smoke ? 20 : 300, full));
  std::puts(nlohmann::json{{"tight", hot}, {"cold", idle}, {"recorder_full", full}}.dump().c_str());
  return full ? 1 : 0;
}
