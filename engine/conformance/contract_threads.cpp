// SPDX-License-Identifier: Apache-2.0
// The contract tags: which threads may call, what may be allocated or logged while messages are exchanged.
#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "allocations.hpp"
#include "contract.hpp"
#include "made_threads.hpp"

namespace lagometer::conformance {

namespace {

constexpr size_t kWarmUp = 300;
constexpr size_t kMeasured = 500;

void any_thread(Bed& bed) {
  Pair pair(bed, bed.endpoint());
  pair.meet();
  std::atomic<bool> ended{false};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> others;
  others.reserve(3);
  for (int index = 0; index < 3; ++index) {
    others.emplace_back([&] {
      try {
        for (; !ended.load(); rounds.fetch_add(1)) {
          static_cast<void>(pair.writer.matched());
          static_cast<void>(pair.reader.matched());
          static_cast<void>(pair.writer.counters());
          static_cast<void>(pair.reader.counters());
          static_cast<void>(bed.adapter.describe(LAGOMETER_OBJECT_CONTEXT, pair.context.handle()));
          static_cast<void>(bed.adapter.describe(LAGOMETER_OBJECT_WRITER, pair.writer.handle()));
          static_cast<void>(bed.adapter.describe(LAGOMETER_OBJECT_READER, pair.reader.handle()));
        }
      } catch (const Refusal&) {
        ended.store(true);  // shows up as rounds that stopped: a normal line says more
      }
    });
  }
  std::string wrong;
  try {
    pair.exchange(300);
    wait_until("three threads that ask got no answers", [&] { return rounds.load() >= 30; });
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  ended.store(true);
  for (std::thread& other : others) other.join();
  if (!wrong.empty()) throw Broken(wrong);
}

void one_thread_per_object(Bed& bed) {
  Context context(bed.adapter, bed.context);
  constexpr uint64_t kEach = 200;
  const auto carry = [&](uint32_t number, std::string& wrong) {
    try {
      const EndpointSpec spec = bed.endpoint("topic_" + std::to_string(number));
      Writer writer(context, spec, number);
      Reader reader(context, spec, {.user = nullptr, .on_data = [](void*) {}});
      std::unique_ptr<Waitset> waitset;
      if (spec.dispatch == LAGOMETER_DISPATCH_WAITSET) {
        waitset = std::make_unique<Waitset>(context);
        waitset->attach(reader);
      }
      reader.enable();
      writer.enable();
      uint64_t came = 0;
      wait_until("with four pairs of endpoints in threads of their own, a pair did not get its 200 messages", [&] {
        writer.probe();
        came += reader.take(Reader::kBatch, [number](const lagometer_sample& sample) {
          const Opened opened = open(sample);
          if (!opened.damage.empty()) throw Broken(opened.damage);
          if (opened.envelope.stream != number) throw Broken("a message of another topic came");
        });
        return came >= kEach;
      });
      waitset.reset();
    } catch (const std::exception& error) {
      wrong = error.what();
    }
  };
  std::string wrong[4];
  std::vector<std::thread> threads;
  const auto topics = static_cast<uint32_t>(std::min<uint64_t>(4, bed.limit("topics_max").value_or(4)));
  for (uint32_t number = 0; number < topics; ++number)
    threads.emplace_back([&carry, &wrong, number] { carry(number, wrong[number]); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong) {
    if (!text.empty()) throw Broken(text);
  }
}

void quiet(Bed& bed) {
  Pair pair(bed, bed.endpoint());
  pair.meet();
  pair.exchange(kWarmUp);
  const uint64_t before = abi_host::tally().logged.load();
  pair.exchange(kMeasured);
  const uint64_t lines = abi_host::tally().logged.load() - before;
  if (lines != 0) throw Broken(std::to_string(lines) + " lines were logged while messages went to and fro");
}

void allocates_nothing_with(Bed& bed, const PayloadType& type) {
  EndpointSpec spec = bed.endpoint(std::string("allocates_nothing/") + type.name);
  spec.type = type.name;
  spec.bytes = type.has_size(1024) ? 1024 : type.bytes_min;
  if (bed.declares("dispatch", "waitset")) spec.dispatch = LAGOMETER_DISPATCH_WAITSET;
  Pair pair(bed, spec);
  pair.meet();
  pair.exchange(kWarmUp);
  uint64_t sequence = 0;
  uint64_t seen = 0;
  count_allocations_of(bed.adapter.library());
  try {
    for (; sequence < kMeasured; ++sequence) {
      pair.writer.send(sequence, spec.bytes);
      const uint64_t wanted = seen + 1;
      for (const int64_t give_up_at_ns = now_ns() + kPatience_ns; seen < wanted && now_ns() < give_up_at_ns;) {
        if (pair.waitset) pair.waitset->wait(now_ns() + 20 * kMillisecond_ns);
        seen += pair.reader.take(Reader::kBatch, [](const lagometer_sample&) {});
      }
    }
  } catch (...) {
    allocations_counted();
    throw;
  }
  const uint64_t count = allocations_counted();
  if (count != 0)
    throw Broken("the adapter's own code allocated " + std::to_string(count) + " times for " +
                 std::to_string(kMeasured) + " messages of type " + type.name +
                 " (if it is a middleware that is linked into the library, name the library in the sidecar's "
                 "`libraries`)");
}

void allocates_nothing(Bed& bed) {
  if (!bed.middleware_inside.empty())
    throw Absent("not judged: in the adapter's library lies " + bed.middleware_inside +
                 ": whose code allocates can't be told");
  if (!allocations_can_be_counted()) throw Absent("not judged: this build can't count allocations");
  for (const PayloadType& type : engine::kPayloadTypes) {
    if (bed.declares("types", type.name)) allocates_nothing_with(bed, type);
  }
}

/// A message by each dispatch, and what the listener does beside.
void by_each_dispatch(Bed& bed, const std::function<void()>& in_callback) {
  for (const char* dispatch : {"listener", "waitset", "poll"}) {
    if (!bed.declares("dispatch", dispatch)) continue;
    EndpointSpec spec = bed.endpoint();
    spec.dispatch = dispatch_of(dispatch);
    const bool listens = spec.dispatch == LAGOMETER_DISPATCH_LISTENER;
    Pair pair(bed, spec, {}, in_callback);
    wait_until("no match", [&] {
      pair.writer.probe();
      if (pair.callbacks.load() > 0) return true;
      // What is taken here might never be announced to a listener.
      return !listens && pair.reader.take(Reader::kBatch, [](const lagometer_sample&) {}) > 0;
    });
  }
}

void threads_told(Bed& bed) {
  const auto unended = [] { return abi_host::tally().threads_begun.load() - abi_host::tally().threads_ended.load(); };
  const uint64_t before = unended();
  by_each_dispatch(bed, {});
  const auto more = static_cast<int64_t>(unended() - before);
  if (more > 0) throw Broken("threads called thread_begin and not thread_end");
  if (static_cast<int64_t>(unended()) < 0)
    throw Broken("threads called thread_end without thread_begin: call thread_begin first");
}

/// Threads of a middleware are not the adapter's, even if they call on_data.
void own_threads_begin(Bed& bed) {
  if (!bed.middleware_inside.empty())
    throw Absent("not judged: in the adapter's library lies " + bed.middleware_inside +
                 ": whose code creates a thread can't be told");
  if (!threads_are_watched()) throw Absent("not judged: this build can't see who creates a thread");
  std::atomic<bool> called_silently{false};
  by_each_dispatch(bed, [&] {
    if (on_silent_thread()) called_silently.store(true);
  });
  const std::string to_do = ": call it first on each thread that the adapter creates, and thread_end last";
  if (called_silently.load()) throw Broken("the thread that calls on_data has not called thread_begin" + to_do);
  const auto silent = [&] {
    return std::to_string(silent_threads()) + " threads of the adapter have not called thread_begin" + to_do;
  };
  wait_until(silent, [] { return silent_threads() == 0 || silent_threads_ended() > 0; });
  if (silent_threads_ended() > 0) throw Broken(silent());
}

}  // namespace

std::vector<Line> thread_lines() {
  return {{"threads: matched, counters, describe from any, while messages flow", any_thread},
          {"threads: endpoints of one context in parallel", one_thread_per_object},
          {"threads: begin and end are told to the host", threads_told},
          {"threads: each that the adapter creates calls thread_begin", own_threads_begin},
          {"measuring: nothing is logged", quiet},
          {"measuring: the adapter's own code allocates nothing", allocates_nothing}};
}

}  // namespace lagometer::conformance
