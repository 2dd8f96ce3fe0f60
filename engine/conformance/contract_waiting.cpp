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

/// Takes everything and waits, until a wait ends only because its time is up.
void settle(Pair& pair) {
  wait_until("a wait did not end with TIMEOUT although everything had been taken,", [&] {
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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it is waiting by then; correct without, too
    try {
      pair.writer.send(0, spec.bytes);
    } catch (const Refusal&) {  // shows up as no message
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
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it is waiting by then; correct without, too
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

void needs_two_topics(Bed& bed) {
  waiting(bed);
  if (bed.limit("topics_max").value_or(2) < 2) throw Absent("the sidecar declares one topic at most");
}

/// Two readers on one waitset, in one context or in two, and a writer for each.
struct Two {
  Two(Bed& bed, Context& first_context, Context& second_context)
      : spec(waiting(bed, "first")),
        writer(first_context, spec, 0),
        first(first_context, spec, {.user = nullptr, .on_data = [](void*) {}}),
        other(waiting(bed, "second")),
        second_writer(second_context, other, 1),
        second(second_context, other, {.user = nullptr, .on_data = [](void*) {}}),
        waitset(first_context) {
    waitset.attach(first);
    waitset.attach(second);
    first.enable();
    second.enable();
    writer.enable();
    second_writer.enable();
  }
  uint32_t empty(Reader& reader) {
    uint32_t sum = 0;
    for (;;) {
      const uint32_t taken = reader.take(Reader::kBatch, [](const lagometer_sample&) {});
      if (taken == 0) return sum;
      sum += taken;
    }
  }
  /// Waits until both have heard their writer and nothing more arrives.
  void meet() {
    uint32_t of_first = 0;
    uint32_t of_second = 0;
    wait_until("data of two readers did not end waits", [&] {
      if (of_first == 0) writer.probe();
      if (of_second == 0) second_writer.probe();
      if (waitset.wait(now_ns() + 20 * kMillisecond_ns) != LAGOMETER_OK) return of_first > 0 && of_second > 0;
      of_first += empty(first);
      of_second += empty(second);
      return false;
    });
  }
  EndpointSpec spec;
  Writer writer;
  Reader first;
  EndpointSpec other;
  Writer second_writer;
  Reader second;
  Waitset waitset;  // the last member: it is destroyed before its readers
};

void names_the_ready(Bed& bed) {
  needs_two_topics(bed);
  if (bed.table().waitset_wait_ready == nullptr) throw Absent("it has no waitset_wait_ready");
  Context context(bed.adapter, bed.context);
  Two two(bed, context, context);
  two.meet();
  std::vector<uint32_t> ready;
  uint32_t needless = 0;
  for (const bool second : {true, false, true, false}) {
    (second ? two.second_writer : two.writer).send(0, two.spec.bytes);
    Reader& reader = second ? two.second : two.first;
    uint32_t taken = 0;
    bool other_named = false;
    wait_until("waitset_wait_ready did not name the reader that has data", [&] {
      if (two.waitset.wait_ready(now_ns() + kPatience_ns, ready) != LAGOMETER_OK) return false;
      for (const uint32_t place : ready) {
        if (place > 1) throw Broken("waitset_wait_ready named reader " + std::to_string(place) + " of two");
        other_named = other_named || place != (second ? 1U : 0U);
        if (place == (second ? 1U : 0U)) taken += two.empty(reader);
      }
      return taken > 0;
    });
    needless += other_named ? 1 : 0;
  }
  if (needless == 4) throw Broken("waitset_wait_ready also named the reader to which nothing was sent, each time");
  two.writer.send(1, two.spec.bytes);
  two.second_writer.send(1, two.spec.bytes);
  uint32_t of_first = 0;
  uint32_t of_second = 0;
  wait_until("waitset_wait_ready did not name both readers, one after the other", [&] {
    if (two.waitset.wait_ready(now_ns() + kPatience_ns, ready) != LAGOMETER_OK) return false;
    for (const uint32_t place : ready)
      (place == 0 ? of_first : of_second) += two.empty(place == 0 ? two.first : two.second);
    return of_first > 0 && of_second > 0;
  });
}

void ready_and_trigger(Bed& bed) {
  waiting(bed);
  if (bed.table().waitset_wait_ready == nullptr) throw Absent("it has no waitset_wait_ready");
  Pair pair(bed, waiting(bed));
  pair.meet();
  settle(pair);
  std::vector<uint32_t> ready;
  if (pair.waitset->wait_ready(now_ns() + 20 * kMillisecond_ns, ready) != LAGOMETER_TIMEOUT)
    throw Broken("waitset_wait_ready with nothing to come did not end with TIMEOUT");
  pair.waitset->trigger();
  if (pair.waitset->wait_ready(now_ns() + kPatience_ns, ready) != LAGOMETER_OK)
    throw Broken("trigger did not end the next waitset_wait_ready");
}

void spans_contexts(Bed& bed) {
  needs_two_topics(bed);
  if (!bed.sidecar.at("abilities").value("waitset_contexts", false)) throw Absent("its waitsets are of one context");
  Context first(bed.adapter, bed.context);
  Context second(bed.adapter, bed.context);
  Two two(bed, first, second);
  two.meet();
}

void takes_and_sends_in_callback(Bed& bed) {
  const EndpointSpec spec = listening(bed, "there");
  EndpointSpec back = bed.endpoint("back");
  std::mutex mutex;
  std::string wrong;
  Pair answers(bed, back);
  std::unique_ptr<Pair> there;
  std::atomic<Pair*> listening_pair{nullptr};  // keeps its value while `there` is being destroyed
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
          {"wait_ready: names the readers that have data, and no other", names_the_ready},
          {"wait_ready: TIMEOUT and trigger, as of wait", ready_and_trigger},
          {"wait: readers of several contexts, if that is declared", spans_contexts},
          {"trigger: ends a wait that is under way", ends_present_wait},
          {"trigger: ends the next wait, and that one alone", ends_next_wait},
          {"listener: may take, borrow and commit", takes_and_sends_in_callback},
          {"listener: calls of one reader never overlap", calls_do_not_overlap}};
}

}  // namespace lagometer::conformance
