// SPDX-License-Identifier: Apache-2.0
#include "inbox.hpp"

#include <time.h>

#include <algorithm>

#include "traces.hpp"

namespace lagometer::conformance {

namespace {

void sleep_ns(int64_t duration_ns) noexcept {
  constexpr int64_t kSecond_ns = 1'000'000'000;
  const timespec time{.tv_sec = duration_ns / kSecond_ns, .tv_nsec = duration_ns % kSecond_ns};
  nanosleep(&time, nullptr);
}

}  // namespace

Inbox::Inbox(Context& context, const EndpointSpec& spec, int64_t work_ns)
    : dispatch_(spec.dispatch),
      payload_(engine::payload_type(spec.type)),
      work_ns_(work_ns),
      stamps_(spec.stamps),
      instances_(spec.instances),
      reader_(context, spec, {.user = this, .on_data = &Inbox::on_data}) {
  if (dispatch_ != LAGOMETER_DISPATCH_WAITSET) return;
  waitset_ = std::make_unique<Waitset>(context);
  waitset_->attach(reader_);
}

Inbox::~Inbox() {
  ended_.store(true);
  changed_.notify_all();
  if (thread_.joinable()) {
    waitset_->trigger();
    thread_.join();
  }
  waitset_.reset();  // before the reader attached to it
  reader_.destroy();
}

void Inbox::enable() {
  reader_.enable();
  if (waitset_) thread_ = std::thread([this] { wait_and_take(); });
}

void Inbox::stall() {
  const std::lock_guard lock(mutex_);
  stalled_ = true;
}

void Inbox::resume() {
  {
    const std::lock_guard lock(mutex_);
    stalled_ = false;
  }
  changed_.notify_all();
}

void Inbox::on_data(void* user) noexcept {
  auto& inbox = *static_cast<Inbox*>(user);
  const InCall in_call(nullptr);
  inbox.callbacks_.fetch_add(1);
  if (inbox.dispatch_ != LAGOMETER_DISPATCH_LISTENER) return;
  inbox.stay_stalled();
  try {
    inbox.take_all();
  } catch (const std::exception& problem) {
    inbox.note_failure(problem.what());
  }
}

void Inbox::stay_stalled() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !stalled_ || ended_.load(); });
}

void Inbox::wait_and_take() noexcept {
  constexpr int64_t kGlance_ns = 100'000'000;
  try {
    while (!ended_.load()) {
      if (waitset_->wait(now_ns() + kGlance_ns) != LAGOMETER_OK) continue;
      stay_stalled();
      take_all();
    }
  } catch (const std::exception& problem) {
    note_failure(problem.what());
  }
}

uint64_t Inbox::poll() {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) return 0;
  }
  try {
    return take_all();
  } catch (const Refusal& refusal) {
    note_failure(refusal.what());
    return 0;
  }
}

uint64_t Inbox::take_all() {
  uint64_t total = 0;
  while (!ended_.load()) {
    const uint32_t taken = reader_.take(Reader::kBatch, [this](const lagometer_sample& sample) { note(sample); });
    if (taken == 0) break;
    total += taken;
    if (work_ns_ > 0) sleep_ns(work_ns_ * taken);
  }
  return total;
}

void Inbox::note(const lagometer_sample& sample) {
  if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) != 0) return;
  Opened opened = open(sample, payload_);
  if (instances_ > 0 && opened.damage.empty() && sample.instance != opened.envelope.sequence % instances_)
    opened.damage = "message " + std::to_string(opened.envelope.sequence) + " came with the key " +
                    std::to_string(sample.instance) + " of " + std::to_string(instances_);
  const std::lock_guard lock(mutex_);
  if (!opened.damage.empty()) {
    if (damaged_++ == 0) damage_ = opened.damage;
    return;
  }
  Heard& heard = heard_[opened.envelope.stream];
  if (opened.envelope.kind == static_cast<uint8_t>(MessageKind::probe)) {
    ++heard.probes;
    return;
  }
  ++heard.count;
  heard.last_bytes = opened.bytes;
  if (heard.sequences.size() >= Heard::kSequencesMax) return;
  heard.sequences.push_back(opened.envelope.sequence);
  if (!stamps_) return;
  const lagometer_stamp_key key{.writer_id = sample.writer_id,
                                .middleware_sequence = sample.middleware_sequence,
                                .source_time_ns = sample.source_time_ns};
  heard.traces.push_back(trace_of(opened.envelope.sequence, key, sample.stamps));
}

void Inbox::note_failure(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = text;
}

nlohmann::json Inbox::account(bool with_sequences) {
  const std::lock_guard lock(mutex_);
  nlohmann::json streams = nlohmann::json::array();
  for (const auto& [stream, heard] : heard_) {
    streams.push_back(
        {{"stream", stream}, {"probes", heard.probes}, {"count", heard.count}, {"last_bytes", heard.last_bytes}});
    if (with_sequences) streams.back()["sequences"] = heard.sequences;
    if (with_sequences && stamps_) streams.back()["traces"] = heard.traces;
  }
  return {{"streams", streams},
          {"damaged", damaged_},
          {"damage", damage_},
          {"failure", failure_},
          {"callbacks", callbacks_.load()}};
}

Poller::~Poller() {
  ended_.store(true);
  thread_.join();
}

void Poller::add(Inbox& inbox) {
  const std::lock_guard lock(mutex_);
  inboxes_.push_back(&inbox);
}

void Poller::remove(Inbox& inbox) {
  const std::lock_guard lock(mutex_);
  std::erase(inboxes_, &inbox);
}

void Poller::run() {
  constexpr int64_t kPause_ns = 200'000;
  while (!ended_.load()) {
    uint64_t taken = 0;
    {
      const std::lock_guard lock(mutex_);
      for (Inbox* inbox : inboxes_) taken += inbox->poll();
    }
    sleep_ns(taken == 0 ? kPause_ns : 1'000);
  }
}

}  // namespace lagometer::conformance
