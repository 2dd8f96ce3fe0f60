// SPDX-License-Identifier: Apache-2.0
// How long frames wait on an emulated link whose rate changes: a rate, or a recorded trace of a link's capacity. Does
// not read a clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

namespace lagometer::link {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();
constexpr int64_t kNsPerS = 1'000'000'000;

/// rate_bps: for frames with overhead_bytes each, 0 means no limit; saved_bytes: the least that an idle line can send
/// at once; queue_bytes: what may wait, the rest is dropped; trace_ms: when a packet may leave, repeated.
struct LineProfile {
  int64_t rate_bps = 0;
  int64_t overhead_bytes = 0;
  int64_t saved_bytes = 0;
  int64_t queue_bytes = 0;
  std::vector<int64_t> trace_ms;
};

/// A waiting frame.
struct Waiting {
  int64_t came_ns = 0;
  std::vector<unsigned char> frame;
};

/// A rate is a token bucket, as in the kernel's back-end: up to one millisecond's worth is saved. A trace works as in
/// Mahimahi (Netravali et al., USENIX ATC 2015): each line lets 1504 bytes leave, a packet of 1500 bytes and the 4 that
/// its device adds; unused opportunities are lost; the trace restarts at its last time. Until `begin_trace`, the rate
/// applies.
class Line {
 public:
  explicit Line(LineProfile profile) : profile_(std::move(profile)), saved_bits_(saved_bits_max()) {}

  /// Whether frames ever wait.
  [[nodiscard]] bool limits() const { return profile_.rate_bps > 0 || traced_; }

  /// Whether the trace has begun.
  [[nodiscard]] bool traced() const { return traced_; }

  /// Queues this frame; returns false if there is no room for it.
  bool push(int64_t now_ns, const unsigned char* frame, size_t size) {
    if (waiting_bytes_ + static_cast<int64_t>(size) > profile_.queue_bytes) return false;
    waiting_bytes_ += static_cast<int64_t>(size);
    waiting_.push_back({.came_ns = now_ns, .frame = {frame, frame + size}});
    if (waiting_.size() == 1) serve(now_ns);
    return true;
  }

  /// When the first frame has left; never if none waits.
  [[nodiscard]] int64_t departure_ns() const { return departure_ns_; }

  /// Removes the first frame, which has left.
  Waiting pop() {
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= static_cast<int64_t>(first.frame.size());
    const int64_t left_ns = departure_ns_;
    departure_ns_ = kNever_ns;
    if (!traced_) {
      save(left_ns);
      saved_bits_ = std::max(0.0, saved_bits_ - bits(first));
    }
    if (!waiting_.empty()) serve(std::max(left_ns, waiting_.front().came_ns));
    return first;
  }

  /// Changes the rate from now on, also for waiting frames.
  void set_rate(int64_t now_ns, int64_t rate_bps) {
    if (traced_ || rate_bps == profile_.rate_bps) return;
    save(now_ns);
    profile_.rate_bps = rate_bps;
    saved_bits_ = std::min(saved_bits_, saved_bits_max());
    if (!waiting_.empty()) serve(now_ns);
  }

  /// Starts the trace now, if there is one; the first frame waits for it from its first byte on.
  void begin_trace(int64_t now_ns) {
    if (profile_.trace_ms.empty()) return;
    traced_ = true;
    round_ns_ = now_ns;
    opportunity_ns_ = now_ns - 1;
    if (!waiting_.empty()) serve(now_ns);
  }

 private:
  static constexpr int64_t kOpportunityBytes = 1504;
  static constexpr int64_t kHeaderBytes = 14;  // Ethernet's, which Mahimahi does not see
  static constexpr int64_t kDeviceBytes = 4;   // added by its device
  static constexpr int64_t kNsPerMs = 1'000'000;

  void serve(int64_t now_ns) {
    const Waiting& first = waiting_.front();
    if (traced_) {
      serve_by_trace(std::max<int64_t>(1, static_cast<int64_t>(first.frame.size()) - kHeaderBytes + kDeviceBytes));
      return;
    }
    save(now_ns);
    const double missing = std::max(0.0, bits(first) - saved_bits_);
    departure_ns_ = now_ns + static_cast<int64_t>(missing * kNsPerS / static_cast<double>(profile_.rate_bps));
  }

  [[nodiscard]] double bits(const Waiting& waiting) const {
    return 8.0 * static_cast<double>(static_cast<int64_t>(waiting.frame.size()) + profile_.overhead_bytes);
  }

  [[nodiscard]] double saved_bits_max() const {
    return std::max(static_cast<double>(profile_.rate_bps) / 1000, 8.0 * static_cast<double>(profile_.saved_bytes));
  }

  /// Saves what could have left since the last call, up to a bound.
  void save(int64_t now_ns) {
    const auto passed_ns = static_cast<double>(std::max<int64_t>(0, now_ns - saved_ns_));
    const double saved_bits = saved_bits_ + passed_ns * static_cast<double>(profile_.rate_bps) / kNsPerS;
    saved_bits_ = std::min(saved_bits_max(), saved_bits);
    saved_ns_ = std::max(saved_ns_, now_ns);
  }

  void serve_by_trace(int64_t bytes) {
    if (opportunity_ns_ < waiting_.front().came_ns) left_bytes_ = 0;
    while (left_bytes_ < bytes) {
      bytes -= left_bytes_;
      do next_opportunity();
      while (opportunity_ns_ < waiting_.front().came_ns);
      left_bytes_ = kOpportunityBytes;
    }
    left_bytes_ -= bytes;
    departure_ns_ = opportunity_ns_;
  }

  void next_opportunity() {
    if (place_ == profile_.trace_ms.size()) {
      place_ = 0;
      round_ns_ += profile_.trace_ms.back() * kNsPerMs;
    }
    opportunity_ns_ = round_ns_ + profile_.trace_ms[place_++] * kNsPerMs;
  }

  LineProfile profile_;
  std::deque<Waiting> waiting_;
  int64_t waiting_bytes_ = 0;
  int64_t departure_ns_ = kNever_ns;  // of the first frame
  double saved_bits_ = 0;
  int64_t saved_ns_ = 0;  // when that was computed
  bool traced_ = false;
  size_t place_ = 0;
  int64_t round_ns_ = 0, opportunity_ns_ = 0, left_bytes_ = 0;
};

}  // namespace lagometer::link
