// SPDX-License-Identifier: Apache-2.0
// The contract of borrow, commit, discard and of a writer's counters.
#include <algorithm>

#include "contract.hpp"

namespace lagometer::conformance {

namespace {

constexpr int64_t kBlocking_ns = 50 * kMillisecond_ns;
// For a call that may block this long: a busy machine wakes nobody on time.
constexpr int64_t kSlack_ns = 2'000 * kMillisecond_ns;
constexpr uint64_t kManyDiscards = 2'000;

lagometer_message borrowed(Bed& bed, Writer& writer, uint64_t bytes) {
  auto message = made<lagometer_message>();
  const lagometer_status status =
      demand("borrow", [&] { return bed.table().borrow(writer.handle(), bytes, &message); });
  if (status != LAGOMETER_OK) throw Broken("borrow of the first message was rejected");
  return message;
}

void give_back(Bed& bed, Writer& writer, lagometer_message& message) {
  const InCall in_call("discard");
  bed.table().discard(writer.handle(), &message);
}

void regions(Bed& bed) {
  EndpointSpec spec = bed.endpoint();
  const bool fixed = spec.type == "fixed";
  spec.bytes = fixed ? 1024 : 5000;
  Pair pair(bed, spec);
  for (const uint64_t bytes : {uint64_t{16}, uint64_t{17}, uint64_t{63}, uint64_t{64}, uint64_t{1001}, spec.bytes}) {
    if (fixed && bytes != spec.bytes) continue;
    lagometer_message message = borrowed(bed, pair.writer, bytes);
    const std::string what = "borrow of " + std::to_string(bytes) + " bytes shows ";
    if (message.region_count < 1 || message.region_count > LAGOMETER_REGIONS_MAX)
      throw Broken(what + std::to_string(message.region_count) + " regions");
    if (bytes_of(message.regions, message.region_count) != bytes)
      throw Broken(what + std::to_string(bytes_of(message.regions, message.region_count)) + " bytes");
    if (message.regions[0].size < LAGOMETER_ENVELOPE_BYTES)
      throw Broken(what + "a first region without room for the envelope");
    if (message.origin < LAGOMETER_ORIGIN_LOANED || message.origin > LAGOMETER_ORIGIN_COPIED)
      throw Broken(what + "the origin " + std::to_string(message.origin));
    for (uint32_t index = 0; index < message.region_count; ++index)
      std::fill_n(message.regions[index].data, message.regions[index].size, uint8_t{0x5A});
    give_back(bed, pair.writer, message);
  }
}

void too_large(Bed& bed) {
  EndpointSpec spec = bed.endpoint();
  spec.bytes = 1024;
  Pair pair(bed, spec);
  must_refuse("a message larger than its type", LAGOMETER_INVALID, [&] { pair.writer.send(0, spec.bytes + 1); });
  if (!bed.declares("types", "fixed")) return;
  spec.type = "fixed";
  spec.topic = "fixed";
  Pair fixed(bed, spec);
  must_refuse("a message smaller than its fixed type", LAGOMETER_INVALID,
              [&] { fixed.writer.send(0, spec.bytes - 1); });
}

void discarded(Bed& bed) {
  const EndpointSpec spec = bed.endpoint();
  Pair pair(bed, spec);
  pair.meet();
  pair.writer.send(0, spec.bytes);
  pair.receive(1);
  for (uint64_t number = 0; number < kManyDiscards; ++number) {
    auto message = made<lagometer_message>();
    const lagometer_status status =
        demand("borrow", [&] { return bed.table().borrow(pair.writer.handle(), spec.bytes, &message); });
    if (status != LAGOMETER_OK) throw Broken("after " + std::to_string(number) + " discards nothing can be borrowed");
    fill(message, {.kind = 0, .stream = 0, .sequence = 77});
    give_back(bed, pair.writer, message);
  }
  pair.writer.send(1, spec.bytes);
  for (const Opened& one : pair.receive(1)) {
    if (one.envelope.sequence == 77) throw Broken("a message that was discarded arrived");
  }
}

struct Pressed {
  uint64_t rejected = 0;
  uint64_t sent_bytes = 0;
  int64_t longest_ns = 0;
  uint64_t counted = 0;
  bool counts = false;
};

/// Sends to a reader that takes nothing, until three messages were rejected or 32 MiB are in flight.
Pressed press(Bed& bed) {
  constexpr uint64_t kEnough = 32U << 20U;
  constexpr uint64_t kBytes = 60'000;
  EndpointSpec spec = bed.endpoint();
  spec.bytes = std::min(kBytes, bed.limit("payload_bytes_max").value_or(kBytes));
  if (spec.type == "fixed") spec.bytes = 1024;
  spec.qos.keep_all = bed.declares("history", "keep_all");
  spec.qos.blocking_ns = kBlocking_ns;
  Pair pair(bed, spec);
  pair.meet();
  const uint64_t before = pair.writer.counters().rejected;  // a probe may have come too early
  Pressed pressed;
  for (uint64_t sequence = 0; pressed.rejected < 3 && pressed.sent_bytes < kEnough; ++sequence) {
    const int64_t begin_ns = now_ns();
    if (pair.writer.send(sequence, spec.bytes) == LAGOMETER_OK)
      pressed.sent_bytes += spec.bytes;
    else
      ++pressed.rejected;
    pressed.longest_ns = std::max(pressed.longest_ns, now_ns() - begin_ns);
  }
  const lagometer_counters counters = pair.writer.counters();
  pressed.counts = (counters.present & LAGOMETER_COUNTER_REJECTED) != 0;
  pressed.counted = counters.rejected - before;
  return pressed;
}

void keeps_its_time(Bed& bed) {
  const Pressed pressed = press(bed);
  if (pressed.longest_ns > kBlocking_ns + kSlack_ns)
    throw Broken("one message took " + std::to_string(pressed.longest_ns / kMillisecond_ns) +
                 " ms to send where 50 ms were allowed");
}

void rejected_counted(Bed& bed) {
  const Pressed pressed = press(bed);
  if (pressed.rejected == 0)
    throw Absent("nothing was rejected in " + std::to_string(pressed.sent_bytes >> 20U) +
                 " MiB to a reader that takes nothing");
  if (!pressed.counts)
    throw Broken("messages were rejected, and counters() reports none: set LAGOMETER_COUNTER_REJECTED in `present`");
  if (pressed.counted != pressed.rejected)
    throw Broken(std::to_string(pressed.rejected) + " messages were rejected, and counters() reports " +
                 std::to_string(pressed.counted));
}

void counters_known(Bed& bed) {
  constexpr uint64_t kKnown = LAGOMETER_COUNTER_LOST | LAGOMETER_COUNTER_REJECTED | LAGOMETER_COUNTER_OVERWRITTEN |
                              LAGOMETER_COUNTER_DEADLINE | LAGOMETER_COUNTER_RESENT;
  Pair pair(bed, bed.endpoint());
  pair.meet();
  if (((pair.writer.counters().present | pair.reader.counters().present) & ~kKnown) != 0)
    throw Broken("counters() sets a bit in `present` that this header does not know");
}

}  // namespace

std::vector<Line> sending_lines() {
  return {{"borrow: regions that are the payload, in order, writable", regions},
          {"borrow: refuses more than the type holds (INVALID)", too_large},
          {"discard: nothing is sent, nothing is used up", discarded},
          {"commit: keeps blocking_ns_max", keeps_its_time},
          {"commit: what is rejected is counted", rejected_counted},
          {"counters: known ones alone", counters_known}};
}

}  // namespace lagometer::conformance
