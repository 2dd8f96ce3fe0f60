// SPDX-License-Identifier: Apache-2.0
// The contract of waitsets and of listeners.
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "contract.hpp"

namespace lagometer::conformance {

namespace {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();

EndpointSpec waiting(Bed& bed, const char* topic = "topic") {
  if (!bed.declares("dispatch", "waitset")) throw Absent("it has no waitset");
  EndpointSpec spec = bed.endpoint(topic);
  spec.dispatch = LAGOMETER_DISPATCH_WAITSET;
  return spec;
}

EndpointSpec listening(Bed& bed, const char* topic = "topic") {
  if (!bed.declares("dispatch", "listener")) throw Absent("it has no listener");
  EndpointSpec spec = bed.endpoint(topic);
  spec.dispatch = LAGOMETER_DISPATCH_LISTENER;
  return spec;
}

/// Takes what is there, and waits, until a wait ends for no reason but its time.
void settle(Pair& pair) {
  wait_until("a waitset with nothing to wait for did not come to rest", [&] {
    while (pair.reader.take(Reader::kBatch, [](const lagometer_sample&) {}) > 0) continue;
    return pair.waitset->wait(now_ns() + 20 * kMillisecond_ns) == LAGOMETER_TIMEOUT;
  });
}

void times_out(Bed& bed) {
  Pair pair(bed, waiting(bed));
  pair.meet();
  settle(pair);
  const int64_t until_ns = now_ns() + 30 * kMillisecond_ns;
  const lagometer_status status = pair.waitset->wait(until_ns);
  if (status != LAGOMETER_TIMEOUT)
    throw Broken("a wait with nothing to come ended with status " + std::to_string(status));
  // The middleware's clock may be coarser than the host's.
  if (now_ns() < until_ns - 2 * kMillisecond_ns) throw Broken("a wait ended with TIMEOUT before its time");
}

void in_the_past(Bed& bed) {
  Pair pair(bed, waiting(bed));
  pair.meet();
  settle(pair);
  const int64_t begin_ns = now_ns();
  if (pair.waitset->wait(1) != LAGOMETER_TIMEOUT) throw Broken("a wait until long ago did not end with TIMEOUT");
  if (now_ns() - begin_ns > kAtOnce_ns) throw Broken("a wait until long ago took more than 1 s");
}

void wakes_on_data(Bed& bed) {
  const EndpointSpec spec = waiting(bed);
  Pair pair(bed, spec);
  pair.meet();
  settle(pair);
  std::jthread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits by then; right without it, too
    try {
      pair.writer.send(0, spec.bytes);
    } catch (const Refusal&) {  // shows as nothing that came
    }
  });
  bool timed_out = false;
  uint32_t taken = 0;
  while (taken == 0 && !timed_out) {
    timed_out = pair.waitset->wait(now_ns() + kPatience_ns) == LAGOMETER_TIMEOUT;
    taken = pair.reader.take(Reader::kBatch, [](const lagometer_sample&) {});
  }
  sender.join();
  if (timed_out) throw Broken("a message did not end a wait of 20 s");
}

void level_triggered(Bed& bed) {
  const EndpointSpec spec = waiting(bed);
  Pair pair(bed, spec);
  pair.meet();
  settle(pair);
  pair.writer.send(0, spec.bytes);
  for (int time = 0; time < 3; ++time) {
    if (pair.waitset->wait(now_ns() + kPatience_ns) != LAGOMETER_OK)
      throw Broken("wait number " + std::to_string(time + 1) + " did not end, with data untaken");
  }
  pair.receive(1);
}

void ends_present_wait(Bed& bed) {
  Pair pair(bed, waiting(bed));
  pair.meet();
  settle(pair);
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits by then; right without it, too
    pair.waitset->trigger();
  });
  const lagometer_status status = pair.waitset->wait(kNever_ns);
  other.join();
  if (status != LAGOMETER_OK) throw Broken("trigger ended an endless wait with status " + std::to_string(status));
}

void ends_next_wait(Bed& bed) {
  Pair pair(bed, waiting(bed));
  pair.meet();
  settle(pair);
  pair.waitset->trigger();
  if (pair.waitset->wait(now_ns() + kPatience_ns) != LAGOMETER_OK) throw Broken("trigger did not end the next wait");
  if (pair.waitset->wait(now_ns() + 20 * kMillisecond_ns) != LAGOMETER_TIMEOUT)
    throw Broken("one trigger ended more than one wait");
}

void second_reader_wakes(Bed& bed) {
  const EndpointSpec spec = waiting(bed, "second");
  Context context(bed.adapter, bed.context);
  Writer writer(context, spec, 0);
  EndpointSpec other = spec;
  other.topic = "first";
  const Called nobody{.user = nullptr, .on_data = [](void*) {}};
  Reader first(context, other, nobody);
  Reader second(context, spec, nobody);
  Waitset waitset(context);
  waitset.attach(first);
  waitset.attach(second);
  first.enable();
  second.enable();
  writer.enable();
  uint32_t taken = 0;
  wait_until("data of the second of two readers did not end a wait", [&] {
    writer.probe();
    if (waitset.wait(now_ns() + 20 * kMillisecond_ns) == LAGOMETER_OK)
      taken += second.take(Reader::kBatch, [](const lagometer_sample&) {});
    return taken > 0;
  });
}

void takes_and_sends_in_callback(Bed& bed) {
  const EndpointSpec spec = listening(bed, "there");
  EndpointSpec back = bed.endpoint("back");
  std::mutex mutex;
  std::string wrong;
  Pair answers(bed, back);
  std::unique_ptr<Pair> there;
  std::atomic<Pair*> listening_pair{nullptr};  // stays what it is while `there` is being destroyed
  const auto echo = [&] {
    Pair* const pair = listening_pair.load();
    if (pair == nullptr) return;
    try {
      pair->reader.take(Reader::kBatch, [&](const lagometer_sample& sample) {
        const Opened opened = open(sample);
        if (opened.envelope.kind != 0) return;
        answers.writer.send(opened.envelope.sequence, back.bytes);
      });
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex);
      wrong = error.what();
    }
  };
  answers.meet();
  there = std::make_unique<Pair>(bed, spec, Manner{}, echo);
  const Ended end(there);
  listening_pair.store(there.get());
  there->meet();
  for (uint64_t sequence = 0; sequence < 20; ++sequence) {
    there->writer.send(sequence, spec.bytes);
    answers.receive(1);
  }
  there.reset();
  if (!wrong.empty()) throw Broken(wrong);
}

void calls_do_not_overlap(Bed& bed) {
  if (bed.limit("endpoints_max").value_or(3) < 3) throw Absent("the sidecar declares two endpoints on a topic at most");
  const EndpointSpec spec = listening(bed);
  std::atomic<int> inside{0};
  std::atomic<uint64_t> overlapped{0};
  std::unique_ptr<Pair> pair;
  std::atomic<Pair*> listening_pair{nullptr};
  const auto watch = [&] {
    if (inside.fetch_add(1) != 0) overlapped.fetch_add(1);
    if (Pair* const watched = listening_pair.load(); watched != nullptr) {
      try {
        watched->reader.take(Reader::kBatch, [](const lagometer_sample&) {});
      } catch (const Refusal&) {  // another line's business
      }
    }
    std::this_thread::yield();
    inside.fetch_sub(1);
  };
  pair = std::make_unique<Pair>(bed, spec, Manner{}, watch);
  const Ended end(pair);
  listening_pair.store(pair.get());
  pair->meet();
  {
    Writer second(pair->context, spec, 1);
    second.enable();
    const auto send = [&spec](Writer& writer) {
      try {
        static_cast<void>(writer.matched());
        for (uint64_t sequence = 0; sequence < 300; ++sequence) writer.send(sequence, spec.bytes);
      } catch (const Refusal&) {  // another line's business
      }
    };
    std::jthread other([&] { send(second); });
    send(pair->writer);
    other.join();
  }
  pair.reset();
  if (overlapped.load() != 0)
    throw Broken("calls of one reader's listener overlapped " + std::to_string(overlapped.load()) + " times");
}

}  // namespace

std::vector<Line> waiting_lines() {
  return {{"wait: TIMEOUT at its time, not before", times_out},
          {"wait: TIMEOUT at once, for a time that is over", in_the_past},
          {"wait: data ends it", wakes_on_data},
          {"wait: level-triggered", level_triggered},
          {"wait: data of any attached reader ends it", second_reader_wakes},
          {"trigger: ends a wait that is under way", ends_present_wait},
          {"trigger: ends the next wait, and that one alone", ends_next_wait},
          {"listener: may take, borrow and commit", takes_and_sends_in_callback},
          {"listener: calls of one reader never overlap", calls_do_not_overlap}};
}

}  // namespace lagometer::conformance
