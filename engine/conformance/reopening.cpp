// SPDX-License-Identifier: Apache-2.0
#include "reopening.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "peer.hpp"

namespace lagometer::conformance {

namespace {

constexpr uint64_t kPayloadBytes = 64;
constexpr uint32_t kSettled = 10;  // rounds after which everything that a library keeps until the process ends exists
constexpr int64_t kLongest_ns = 20'000'000'000;
constexpr int64_t kEnding_ns = 15'000'000'000;  // a pool keeps a thread that has nothing to do: Tokio's, 10 s
constexpr auto kPause = std::chrono::milliseconds(1);
constexpr uint64_t kBefore = 20;  // messages before a reader is destroyed, and as many after

struct Incoming {
  std::atomic<bool> destroyed{false};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> late_calls{0};
};

void on_data(void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.calls.fetch_add(1);
  if (incoming.destroyed.load()) incoming.late_calls.fetch_add(1);
}

EndpointSpec endpoint(uint32_t dispatch, const Reopening& wanted) {
  EndpointSpec spec;
  spec.topic = "again";
  spec.bytes = kPayloadBytes;
  spec.qos.depth = wanted.depth;
  spec.qos.blocking_ns = wanted.blocking_ns;
  spec.dispatch = dispatch;
  return spec;
}

/// Everything of one round, created and enabled.
class Round {
 public:
  Round(const Adapter& adapter, const ContextSpec& spec, const Reopening& wanted)
      : context_(adapter, spec),
        writer_(context_, endpoint(LAGOMETER_DISPATCH_POLL, wanted), 0),
        reader_(context_, endpoint(wanted.dispatch, wanted), {.user = &incoming_, .on_data = &on_data}) {
    if (wanted.dispatch == LAGOMETER_DISPATCH_WAITSET) {
      waitset_ = std::make_unique<Waitset>(context_);
      waitset_->attach(reader_);
    }
    reader_.enable();
    writer_.enable();
  }

  /// Publishes until a message was taken and, with a listener, announced.
  void exchange(bool listens) {
    const int64_t give_up_at_ns = now_ns() + kLongest_ns;
    for (bool taken = false; !taken || (listens && incoming_.calls.load() == 0);) {
      static_cast<void>(writer_.matched());
      writer_.send(0, kPayloadBytes);
      rest();
      taken = reader_.take(Reader::kBatch, [](const lagometer_sample&) {}) > 0 || taken;
      if (now_ns() > give_up_at_ns) throw std::runtime_error("nothing came within 20 s");
    }
  }

  /// Destroys the reader while its publisher continues. Returns how many callbacks came too late.
  uint64_t close() {
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> published{0};
    std::thread traffic([&] {
      try {
        for (uint64_t sequence = 1; !stop.load(); ++sequence, published.fetch_add(1))
          writer_.send(sequence, kPayloadBytes);
      } catch (const Refusal& refusal) {
        failure_ = refusal.what();
        stop.store(true);
      }
    });
    // Only these waits count as progress: while the traffic flows on, the destruction may hang.
    const auto wait_for = [&](uint64_t count) {
      for (uint64_t before = 0; published.load() < count && !stop.load(); rest()) {
        if (const uint64_t now = published.load(); std::exchange(before, now) != now) step();
      }
    };
    wait_for(kBefore);
    waitset_.reset();
    reader_.destroy();
    incoming_.destroyed.store(true);
    wait_for(published.load() + kBefore);
    stop.store(true);
    traffic.join();
    if (!failure_.empty()) throw std::runtime_error("sending while the reader goes: " + failure_);
    return incoming_.late_calls.load();
  }

 private:
  Incoming incoming_;
  std::string failure_;
  Context context_;
  Writer writer_;
  Reader reader_;
  std::unique_ptr<Waitset> waitset_;
};

uint64_t threads_of(const nlohmann::json& held) { return held.at("threads").get<uint64_t>(); }

/// A thread may end some time after it was returned; a leaked thread never ends.
nlohmann::json held_in_the_end(uint64_t threads) {
  const int64_t give_up_at_ns = now_ns() + kEnding_ns;
  nlohmann::json held = held_now();
  while (threads_of(held) > threads && now_ns() < give_up_at_ns) {
    std::this_thread::sleep_for(kPause);
    step();
    held = held_now();
  }
  return held;
}

}  // namespace

nlohmann::json reopen_again_and_again(const Adapter& adapter, const Reopening& wanted) {
  ContextSpec spec;
  spec.options = wanted.options;
  spec.network = wanted.network;
  spec.runtime_directory = wanted.runtime_directory;
  uint64_t late_callbacks = 0;
  nlohmann::json before;
  for (uint32_t number = 0; number < kSettled + wanted.rounds; ++number) {
    if (number == kSettled) {
      before = held_now();
    } else if (number > kSettled && number <= 2 * kSettled) {  // a pool shrinks, too; a leak grows with every opening
      before["threads"] = std::max(threads_of(before), threads_of(held_now()));
    }
    step(number, kSettled + wanted.rounds);
    Round round(adapter, spec, wanted);
    round.exchange(wanted.dispatch == LAGOMETER_DISPATCH_LISTENER);
    late_callbacks += round.close();
  }
  return {{"before", before}, {"after", held_in_the_end(threads_of(before))}, {"late_callbacks", late_callbacks}};
}

}  // namespace lagometer::conformance
