// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>

namespace lagometer::faulty {
namespace {

// The envelope of docs/PROTOCOL.md: sender and sequence. Only it decides which faults affect a message.
struct Envelope {
  uint16_t magic;
  uint8_t version;
  uint8_t kind;
  uint32_t stream;
  uint64_t sequence;
};
static_assert(sizeof(Envelope) == LAGOMETER_ENVELOPE_BYTES);
constexpr uint8_t kProbe = 1;
// Beyond what any trial sends; the low byte, which marks the payload, stays the same.
constexpr uint64_t kStrayFrom = uint64_t{1} << 32U;
constexpr uint64_t kLineBytes = 64;

Envelope envelope_of(const lagometer_message& message) {
  Envelope envelope{};
  std::memcpy(&envelope, message.regions[0].data, sizeof envelope);
  return envelope;
}

// Where a receiver checks: the mark in the last line or, if a payload is too small for one, the envelope's magic.
void corrupt(lagometer_message& message) {
  const lagometer_region& last = message.regions[message.region_count - 1];
  const bool marked = message.region_count == 1 && last.size >= 2 * kLineBytes;
  uint8_t* const byte = marked ? last.data + (last.size - 1) / kLineBytes * kLineBytes : message.regions[0].data;
  *byte ^= 0xFFU;
}

void sleep_for(int64_t duration_ns) {
  const timespec time{.tv_sec = duration_ns / 1'000'000'000, .tv_nsec = duration_ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

/// Spins on this CPU: a sleep would end tens of microseconds late.
void spin_for(int64_t duration_ns) {
  const int64_t end_ns = now_ns() + duration_ns;
  while (now_ns() < end_ns) {
  }
}

[[noreturn]] void hang() {
  for (;;) pause();
}

void crash() {
  prctl(PR_SET_DUMPABLE, 0);  // no core file: nothing could be learnt from it
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : table_(node.context.table()), faults_(node.context.faults()), tokens_(faults_.limit_burst) {
  const uint64_t bytes = reinterpret_cast<Type*>(config.type)->max_bytes;
  const auto wanted = [&](Fault fault) {
    const Strike& strike = faults_.strikes[static_cast<size_t>(fault)];
    return strike.share > 0.0 || strike.sequence.has_value();
  };
  if (wanted(Fault::reorder)) held_.reserve(bytes);
  if (wanted(Fault::duplicate) || wanted(Fault::stray)) copy_.reserve(bytes);
  const lagometer_endpoint_config inner_config = unwrapped(config);
  check_inner(table_.writer_create(node.inner(), &inner_config, &inner_));
}

lagometer_status Writer::commit(lagometer_message& message) {
  const Envelope envelope = envelope_of(message);
  if (envelope.kind != kProbe) return commit_data(message, envelope.stream, envelope.sequence);
  const bool silent = faults_.probes && faults_.strikes_at(Fault::drop, envelope.stream, envelope.sequence);
  return silent ? drop(message) : table_.commit(inner_, &message);
}

lagometer_status Writer::commit_data(lagometer_message& message, uint32_t stream, uint64_t sequence) {
  const auto struck = [&](Fault fault) { return faults_.strikes_at(fault, stream, sequence); };
  if (struck(Fault::hang)) hang();
  if (struck(Fault::crash)) crash();
  if (struck(Fault::drop) || (faults_.concerns(stream) && over_the_limit())) return drop(message);
  if (struck(Fault::corrupt)) corrupt(message);
  const bool has_key = LAGOMETER_HAS(&message, instance);
  if (struck(Fault::key) && has_key) message.instance = 0;
  if (struck(Fault::delay)) sleep_for(faults_.delay_ns);
  if (struck(Fault::spin)) spin_for(faults_.spin_ns);
  if (struck(Fault::reorder) && !holding_) return hold(message);
  const bool twice = struck(Fault::duplicate);
  const bool followed = struck(Fault::stray);
  const uint32_t instance = has_key ? message.instance : 0;
  if (twice || followed) copy_out(message, copy_);
  const lagometer_status status = table_.commit(inner_, &message);
  for (uint32_t copy = 0; twice && copy < faults_.copies; ++copy) send(copy_, instance);
  if (followed) send_stray(sequence, instance);
  if (holding_) send_held();
  return status;
}

/// Accepted, but lost.
lagometer_status Writer::drop(lagometer_message& message) {
  table_.discard(inner_, &message);
  return LAGOMETER_OK;
}

/// Accepted, but sent after the next one.
lagometer_status Writer::hold(lagometer_message& message) {
  copy_out(message, held_);
  held_instance_ = LAGOMETER_HAS(&message, instance) ? message.instance : 0;
  table_.discard(inner_, &message);
  holding_ = true;
  return LAGOMETER_OK;
}

void Writer::send_held() {
  holding_ = false;
  send(held_, held_instance_);
}

/// Like another publisher's message: nobody has recorded that it was sent.
void Writer::send_stray(uint64_t sequence, uint32_t instance) {
  sequence += kStrayFrom;
  std::memcpy(copy_.data() + offsetof(Envelope, sequence), &sequence, sizeof sequence);
  send(copy_, instance);
}

void Writer::copy_out(const lagometer_message& message, std::vector<uint8_t>& payload) {
  payload.clear();
  for (uint32_t region = 0; region < message.region_count; ++region) {
    const lagometer_region& part = message.regions[region];
    payload.insert(payload.end(), part.data, part.data + part.size);
  }
}

/// One more message of the adapter's own; if it is rejected it is lost, which is a fault, too.
void Writer::send(const std::vector<uint8_t>& payload, uint32_t instance) {
  lagometer_message message{};
  message.size = sizeof message;
  message.abi_version = LAGOMETER_ABI_VERSION;
  if (table_.borrow(inner_, payload.size(), &message) != LAGOMETER_OK) return;
  uint64_t at = 0;
  for (uint32_t region = 0; region < message.region_count; ++region) {
    const uint64_t bytes = std::min<uint64_t>(message.regions[region].size, payload.size() - at);
    std::memcpy(message.regions[region].data, payload.data() + at, bytes);
    at += bytes;
  }
  message.instance = instance;
  table_.commit(inner_, &message);
}

/// A token bucket: filled at limit_rate_hz, never beyond limit_burst.
bool Writer::over_the_limit() {
  if (faults_.limit_rate_hz <= 0.0) return false;
  const int64_t now = now_ns();
  if (filled_ns_ != 0) {
    tokens_ += static_cast<double>(now - filled_ns_) * 1e-9 * faults_.limit_rate_hz;
    tokens_ = std::min(tokens_, faults_.limit_burst);
  }
  filled_ns_ = now;
  if (tokens_ < 1.0) return true;
  tokens_ -= 1.0;
  return false;
}

}  // namespace lagometer::faulty
