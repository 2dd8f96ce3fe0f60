// SPDX-License-Identifier: Apache-2.0
// The events of one CPU's tracepoints, in memory that the kernel writes and we read (perf_event_open(2)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace lagometer::scheduler {

/// A descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_ = -1;
};

/// One sample of a tracepoint. thread: the current one, in the PID namespace of this process; 0: not visible from here;
/// raw: the tracepoint's bytes, valid until the next sample.
struct Sample {
  int64_t time_ns = 0;
  uint32_t cpu = 0;
  int32_t thread = 0;
  std::span<const std::byte> raw;
};

/// Callbacks for the events, in the order in which they happened on that CPU.
struct Hearing {
  std::function<void(const Sample&)> sample;
  std::function<void(int64_t time_ns, uint32_t cpu, uint64_t count)> lost;  // this many before that time
};

/// The tracepoints of one CPU, which share one ring. Records nothing before `enable`.
class PerfRing {
 public:
  /// bytes: a power of two, halved until the kernel grants it. Throws std::runtime_error with the reason.
  PerfRing(uint32_t cpu, std::span<const uint16_t> tracepoints, size_t bytes);
  ~PerfRing();
  PerfRing(PerfRing&& other) noexcept;
  PerfRing& operator=(PerfRing&&) = delete;
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  /// Readable when the ring is half full.
  int descriptor() const { return events_.front().number(); }
  void enable() const;
  void disable() const;
  /// Passes on what arrived since the last call.
  void drain(const Hearing& hearing);

 private:
  void hear(std::span<const std::byte> record, const Hearing& hearing) const;

  uint32_t cpu_;
  std::vector<Descriptor> events_;
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;  // of the ring alone; a page with its state precedes it
  std::vector<std::byte> record_;
};

}  // namespace lagometer::scheduler
