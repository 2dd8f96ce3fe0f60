// SPDX-License-Identifier: Apache-2.0
// What frames wait for on an emulated link whose rate changes: a rate, or a recorded trace of a link's capacity. Knows
// no clock of its own.
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

/// rate_bps: of frames with overhead_bytes for each, 0 without a limit; queue_bytes: what may wait, the rest is
/// dropped; trace_ms: when a packet may leave, from the first millisecond on, and then over and over.
struct LineProfile {
  int64_t rate_bps = 0;
  int64_t overhead_bytes = 0;
  int64_t queue_bytes = 0;
  std::vector<int64_t> trace_ms;
};

/// A frame that waits.
struct Waiting {
  int64_t came_ns = 0;
  std::vector<unsigned char> frame;
};

/// One frame leaves at a time. A trace is that of Mahimahi (Netravali et al., USENIX ATC 2015): each line lets 1504
/// bytes leave, a packet of 1500 bytes with the 4 that the packet's own device adds; what nobody waited for is lost;
/// the trace begins again at its last time. Until `begin_trace` the rate holds.
class Line {
 public:
  explicit Line(LineProfile profile) : profile_(std::move(profile)) {}

  /// Whether frames wait at all.
  [[nodiscard]] bool limits() const { return profile_.rate_bps > 0 || traced_; }

  /// Whether the queue has room for this frame; takes it if so.
  bool push(int64_t now_ns, const unsigned char* frame, size_t size) {
    if (waiting_bytes_ + static_cast<int64_t>(size) > profile_.queue_bytes) return false;
    waiting_bytes_ += static_cast<int64_t>(size);
    waiting_.push_back({.came_ns = now_ns, .frame = {frame, frame + size}});
    if (waiting_.size() == 1) serve(now_ns);
    return true;
  }

  /// When the first frame has left; never while none waits.
  [[nodiscard]] int64_t departure_ns() const { return departure_ns_; }

  /// Takes the first frame, which has left.
  Waiting pop() {
    Waiting first = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= static_cast<int64_t>(first.frame.size());
    const int64_t left_ns = departure_ns_;
    departure_ns_ = kNever_ns;
    if (!waiting_.empty()) serve(std::max(left_ns, waiting_.front().came_ns));
    return first;
  }

  /// Another rate from now on; the rest of the first frame leaves at that.
  void set_rate(int64_t now_ns, int64_t rate_bps) {
    if (traced_ || rate_bps == profile_.rate_bps) return;
    if (!waiting_.empty()) {
      const auto passed_ns = static_cast<double>(std::max<int64_t>(0, now_ns - began_ns_));
      bits_ = std::max(0.0, bits_ - passed_ns * static_cast<double>(profile_.rate_bps) / kNsPerS);
    }
    profile_.rate_bps = rate_bps;
    if (!waiting_.empty()) serve_rest(std::max(now_ns, began_ns_));
  }

  /// The trace begins now, if there is one; the first frame waits for it from its first byte on.
  void begin_trace(int64_t now_ns) {
    if (profile_.trace_ms.empty()) return;
    traced_ = true;
    round_ns_ = now_ns;
    opportunity_ns_ = now_ns - 1;
    if (!waiting_.empty()) serve(now_ns);
  }

 private:
  static constexpr int64_t kOpportunityBytes = 1504;
  static constexpr int64_t kHeaderBytes = 14;  // of Ethernet, which Mahimahi does not see
  static constexpr int64_t kDeviceBytes = 4;   // which its device adds
  static constexpr int64_t kNsPerMs = 1'000'000;

  void serve(int64_t now_ns) {
    const auto size = static_cast<int64_t>(waiting_.front().frame.size());
    if (traced_) {
      serve_by_trace(std::max<int64_t>(1, size - kHeaderBytes + kDeviceBytes));
      return;
    }
    bits_ = 8.0 * static_cast<double>(size + profile_.overhead_bytes);
    serve_rest(now_ns);
  }

  void serve_rest(int64_t now_ns) {
    began_ns_ = now_ns;
    departure_ns_ = now_ns + static_cast<int64_t>(bits_ * kNsPerS / static_cast<double>(profile_.rate_bps));
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
  int64_t began_ns_ = 0;              // when the rest of the first frame began to leave
  double bits_ = 0;                   // of that rest
  bool traced_ = false;
  size_t place_ = 0;
  int64_t round_ns_ = 0, opportunity_ns_ = 0, left_bytes_ = 0;
};

}  // namespace lagometer::link
