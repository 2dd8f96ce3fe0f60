// SPDX-License-Identifier: Apache-2.0
// How an adapter identifies an endpoint (`user` in its configuration), and what it reports about it on its own threads.
#pragma once

#include <atomic>
#include <cstdint>

#include "endpoint_events.hpp"
#include "lagometer/stamps.h"
#include "recorder.hpp"
#include "stage.hpp"

namespace lagometer::engine {

class EndpointUser {
 public:
  explicit EndpointUser(const Stage& given) : stage(given) {}

  /// Writers: their stream; readers may have several.
  void record_into(const StampLane& stamps, uint32_t stream = kStreamUnknown) noexcept {
    stamps_ = stamps;
    stream_ = stream;
  }
  /// Keeps a stamp of a message that is identified only by its key; keeps nothing before the common start. [thread:
  /// any; allocates: no]
  void stamp(const lagometer_stamp_key& key, uint32_t layer, int64_t time_ns, uint32_t cpu) const noexcept {
    if (!stage.running() || !stamps_.wanted() || layer == LAGOMETER_LAYER_NONE || time_ns == 0) return;
    stamps_.add({.sequence = kSequenceUnknown,
                 .writer_id = key.writer_id,
                 .middleware_sequence = key.middleware_sequence,
                 .source_time_ns = key.source_time_ns,
                 .time_ns = time_ns,
                 .stream = stream_,
                 .layer = layer,
                 .cpu = static_cast<uint16_t>(cpu),
                 .zeros = {}});
  }

  /// [thread: any; allocates: no]
  static void event(void* user, uint32_t event, uint64_t total) noexcept {
    auto* const self = static_cast<EndpointUser*>(user);
    self->events.happened(self->stage, event, total);
  }

  /// The policy of the next event. [thread: any; allocates: no]
  static void tell_policy(void* user, uint32_t policy) noexcept {
    static_cast<EndpointUser*>(user)->policy_.store(policy, std::memory_order_relaxed);
  }
  /// The last policy for which it met incompatible endpoints; 0: not known.
  [[nodiscard]] uint32_t policy() const noexcept { return policy_.load(std::memory_order_relaxed); }

  const Stage& stage;
  EndpointEvents events;
  bool stamped = false;  // its adapter was asked for stamps and provides them

 private:
  std::atomic<uint32_t> policy_{0};
  StampLane stamps_;
  uint32_t stream_ = kStreamUnknown;
};

}  // namespace lagometer::engine
