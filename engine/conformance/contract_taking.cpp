// SPDX-License-Identifier: Apache-2.0
// The contract of take and release, and of the match count.
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <thread>

#include "contract.hpp"

namespace lagometer::conformance {

namespace {

constexpr size_t kCanary = 48;

/// One element of an array whose elements are further apart than their size.
struct Spaced {
  lagometer_sample sample;
  std::array<uint8_t, kCanary> canary;
};

Spaced spaced() {
  Spaced one{.sample = made<lagometer_sample>(), .canary = {}};
  one.canary.fill(0xC3);
  return one;
}

uint32_t take_raw(Bed& bed, Reader& reader, Spaced* samples, uint32_t max) {
  uint32_t taken = 0;
  demand("take", [&] { return bed.table().take(reader.handle(), &samples->sample, sizeof(Spaced), max, &taken); });
  if (taken > max)
    throw Broken("take returned " + std::to_string(taken) + " samples, and max was " + std::to_string(max));
  return taken;
}

bool is_data(const lagometer_sample& sample) {
  if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) != 0) return false;
  const Opened opened = open(sample);
  if (!opened.damage.empty()) throw Broken(opened.damage);
  return opened.envelope.kind == static_cast<uint8_t>(MessageKind::data);
}

void empty_at_once(Bed& bed) {
  Pair pair(bed, bed.endpoint());
  Spaced sample = spaced();
  const int64_t begin_ns = now_ns();
  if (take_raw(bed, pair.reader, &sample, 1) != 0) throw Broken("take returned a sample although nothing was sent");
  if (now_ns() - begin_ns > kAtOnce_ns) throw Broken("take with nothing there blocked for more than 1 s");
}

void at_most_max(Bed& bed) {
  const EndpointSpec spec = bed.endpoint();
  Pair pair(bed, spec);
  pair.meet();
  const uint64_t count = std::min<uint64_t>(8, bed.limit("depth_max").value_or(8));
  for (uint64_t sequence = 0; sequence < count; ++sequence) pair.writer.send(sequence, spec.bytes);
  uint64_t data = 0;
  wait_until("8 messages (or depth_max) did not all come, with max = 3 for each take,", [&] {
    std::array<Spaced, 3> samples{spaced(), spaced(), spaced()};
    if (pair.waitset) pair.waitset->wait(now_ns() + kMillisecond_ns);
    const uint32_t taken = take_raw(bed, pair.reader, samples.data(), 3);
    for (uint32_t index = 0; index < taken; ++index) data += is_data(samples[index].sample) ? 1 : 0;
    if (taken > 0) pair.reader.release(&samples[0].sample, sizeof(Spaced), taken);
    return data == count;
  });
}

void within_the_stride(Bed& bed) {
  const EndpointSpec spec = bed.endpoint();
  Pair pair(bed, spec);
  pair.meet();
  const uint64_t count = std::min<uint64_t>(4, bed.limit("depth_max").value_or(4));
  for (uint64_t sequence = 0; sequence < count; ++sequence) pair.writer.send(sequence, spec.bytes);
  uint64_t data = 0;
  wait_until("4 messages (or depth_max) did not all come", [&] {
    std::array<Spaced, 4> samples{spaced(), spaced(), spaced(), spaced()};
    if (pair.waitset) pair.waitset->wait(now_ns() + kMillisecond_ns);
    const uint32_t taken = take_raw(bed, pair.reader, samples.data(), 4);
    for (uint32_t index = 0; index < taken; ++index) data += is_data(samples[index].sample) ? 1 : 0;
    if (taken > 0) pair.reader.release(&samples[0].sample, sizeof(Spaced), taken);
    for (const Spaced& one : samples) {
      if (std::any_of(one.canary.begin(), one.canary.end(), [](uint8_t byte) { return byte != 0xC3; }))
        throw Broken("what lies between the elements of the array was written to");
    }
    return data == count;
  });
}

void check_sample(const lagometer_sample& sample, int64_t sent_after_ns) {
  constexpr uint32_t kKnown = LAGOMETER_SAMPLE_NOT_DATA | LAGOMETER_SAMPLE_LOANED;
  if ((sample.flags & ~kKnown) != 0) throw Broken("a sample has unknown flags");
  if (sample.source_clock > LAGOMETER_CLOCK_WALL || sample.reception_clock > LAGOMETER_CLOCK_WALL)
    throw Broken("a sample names an unknown clock");
  if (sample.signalled_ns == 0) return;
  if (sample.signalled_ns < sent_after_ns || sample.signalled_ns > now_ns())
    throw Broken("signalled_ns lies before the sending or after the taking");
}

/// What `stamps` lists of a dispatch is what the samples say. With a listener the begin of the callback counts, too, so
/// there the adapter may set signalled_ns or not.
void check_signalled(Bed& bed, const char* dispatch, uint64_t signalled, uint64_t samples) {
  const std::string with = std::string(" with dispatch ") + dispatch;
  const std::string list = std::string("\"signalled\" under \"") + dispatch + "\" in the sidecar's abilities.stamps";
  const bool listens = dispatch_of(dispatch) == LAGOMETER_DISPATCH_LISTENER;
  if (signalled != 0 && signalled != samples && !listens)
    throw Broken("signalled_ns is set in " + std::to_string(signalled) + " of " + std::to_string(samples) + " samples" +
                 with + ": set it in all, or leave it 0");
  const bool listed = bed.declares_stamp(dispatch, "signalled");
  if (signalled != 0 && !listed)
    throw Broken("signalled_ns is set" + with + ": leave it 0, or, if a thread of the adapter's own noticed the " +
                 "message, list " + list);
  if (signalled == 0 && listed && !listens)
    throw Broken("signalled_ns is 0" + with + ": set it where a thread of the adapter's own notices the message, " +
                 "or leave out " + list);
}

/// Sends one by one and checks what is reported about each; with a listener, inside its callback.
void samples_of(Bed& bed, const char* dispatch) {
  EndpointSpec spec = bed.endpoint(std::string("told_by_") + dispatch);
  spec.dispatch = dispatch_of(dispatch);
  const bool listens = spec.dispatch == LAGOMETER_DISPATCH_LISTENER;
  std::atomic<int64_t> sent_after_ns{0};
  std::atomic<uint64_t> seen{0};
  std::atomic<uint64_t> signalled{0};
  std::mutex mutex;
  std::string wrong;
  std::unique_ptr<Pair> pair;
  std::atomic<Pair*> looked_at{nullptr};  // keeps its value while `pair` is being destroyed
  const auto look = [&] {
    looked_at.load()->reader.take(Reader::kBatch, [&](const lagometer_sample& sample) {
      if (!is_data(sample)) return;
      check_sample(sample, sent_after_ns.load());
      signalled.fetch_add(sample.signalled_ns != 0 ? 1 : 0);
      seen.fetch_add(1);
    });
  };
  const auto in_callback = [&] {
    if (looked_at.load() == nullptr) return;
    try {
      look();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      wrong = error.what();
      seen.fetch_add(1);
    }
  };
  pair = std::make_unique<Pair>(bed, spec, Manner{}, listens ? std::function<void()>(in_callback) : nullptr);
  const Ended end(pair);
  looked_at.store(pair.get());
  pair->meet();
  for (uint64_t sequence = 0; sequence < 20; ++sequence) {
    sent_after_ns.store(now_ns());
    pair->writer.send(sequence, spec.bytes);
    wait_until("a message did not come", [&] {
      if (pair->waitset) pair->waitset->wait(now_ns() + kMillisecond_ns);
      if (!listens) look();
      return seen.load() > sequence;
    });
  }
  pair.reset();
  if (!wrong.empty()) throw Broken(wrong);
  check_signalled(bed, dispatch, signalled.load(), seen.load());
}

void samples_tell_the_truth(Bed& bed) {
  for (const char* dispatch : {"poll", "waitset", "listener"}) {
    if (bed.declares("dispatch", dispatch)) samples_of(bed, dispatch);
  }
}

void kept_until_release(Bed& bed) {
  if (bed.limit("endpoints_max").value_or(3) < 3) throw Absent("the sidecar declares two endpoints on a topic at most");
  const EndpointSpec spec = bed.endpoint();
  Pair pair(bed, spec);
  Reader second(pair.context, spec, {.user = nullptr, .on_data = [](void*) {}});
  std::unique_ptr<Waitset> waitset;
  if (spec.dispatch == LAGOMETER_DISPATCH_WAITSET) {
    waitset = std::make_unique<Waitset>(pair.context);
    waitset->attach(second);
  }
  second.enable();
  pair.meet();
  uint64_t seen = 0;
  const auto look_at_second = [&] { second.take(Reader::kBatch, [&](const lagometer_sample&) { ++seen; }); };
  wait_until("no probe came to a second reader", [&] {
    pair.writer.probe();
    look_at_second();
    return seen > 0;
  });
  while (pair.reader.take(Reader::kBatch, [](const lagometer_sample&) {}) > 0) continue;
  Spaced held = spaced();
  uint64_t first = 100;
  wait_until("no message came that could be held", [&] {
    pair.writer.send(first++, spec.bytes);
    return take_raw(bed, pair.reader, &held, 1) == 1;
  });
  const Opened before = open(held.sample);
  // Nobody takes from the first reader meanwhile, so send only as many as its queue has room for. A full queue blocks
  // the writer until it gives up, even though the second reader got the message.
  const uint64_t count = std::min<uint64_t>(64, bed.limit("depth_max").value_or(64));
  for (uint64_t sequence = 1'000; sequence < 1'000 + count; ++sequence) {
    const int64_t begin_ns = now_ns();
    if (pair.writer.send(sequence, spec.bytes) != LAGOMETER_OK) break;
    step();
    if (now_ns() - begin_ns >= spec.qos.blocking_ns) break;
    const uint64_t wanted = seen + 1;
    wait_until("a second reader did not get what came meanwhile", [&] {
      look_at_second();
      return seen >= wanted;
    });
  }
  const Opened after = open(held.sample);
  pair.reader.release(&held.sample, sizeof(Spaced), 1);
  if (!after.damage.empty() || after.envelope.sequence != before.envelope.sequence)
    throw Broken("what take showed changed before its release, while more messages came");
  waitset.reset();
}

void match_count(Bed& bed) {
  Pair pair(bed, bed.endpoint());
  pair.meet();
  const auto check = [](const char* side, const lagometer_matched& matched) {
    if (matched.exact > 2) throw Broken(std::string(side) + "_matched sets `exact` to more than 2");
    if (matched.exact == 2 && matched.count != 0)
      throw Broken(std::string(side) + "_matched can't tell (`exact` is 2), but its count is not 0");
    return matched.exact == 2 || matched.count >= 1;
  };
  wait_until("writer_matched counts no reader, while messages come,",
             [&] { return check("writer", pair.writer.matched()); });
  wait_until("reader_matched counts no writer, while messages come,",
             [&] { return check("reader", pair.reader.matched()); });
  pair.waitset.reset();
  pair.reader.destroy();
  wait_until("writer_matched still counts a reader that was destroyed",
             [&] { return pair.writer.matched().count == 0; });
}

}  // namespace

std::vector<Line> taking_lines() {
  return {{"take: none, at once, where nothing is", empty_at_once},
          {"take: at most max", at_most_max},
          {"take: nothing between elements that lie `stride` apart", within_the_stride},
          {"take: known flags and clocks, signalled_ns as the sidecar's stamps say", samples_tell_the_truth},
          {"take: what it shows stays until release", kept_until_release},
          {"matched: counts who is there, or says that it can't", match_count}};
}

}  // namespace lagometer::conformance
