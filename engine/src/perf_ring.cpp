// SPDX-License-Identifier: Apache-2.0
#include "perf_ring.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <utility>

namespace lagometer::scheduler {
namespace {

constexpr size_t kRingBytesMin = 64U << 10U;

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

[[noreturn]] void refuse(int code) {
  const std::string name = strerrorname_np(code) == nullptr ? "error" : strerrorname_np(code);
  if (code == EACCES || code == EPERM)
    throw std::runtime_error(name +
                             ": the kernel does not let us see all CPUs: run as root, or with CAP_PERFMON, or "
                             "`sysctl kernel.perf_event_paranoid=-1`");
  if (code == EMFILE) throw std::runtime_error(name + ": too many descriptors for so many CPUs (ulimit -n)");
  throw std::runtime_error(name + ": tracepoints can't be opened: " + std::strerror(code));
}

int open_event(uint16_t tracepoint, uint32_t cpu, size_t bytes) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = tracepoint;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;
  attributes.disabled = 1;
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<uint32_t>(bytes / 2);
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

/// Reads numbers one after the other; missing ones are 0.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename Number>
  Number take() {
    Number found{};
    if (bytes_.size() < sizeof found) return found;
    std::memcpy(&found, bytes_.data(), sizeof found);
    bytes_ = bytes_.subspan(sizeof found);
    return found;
  }
  std::span<const std::byte> rest(size_t count) const { return bytes_.first(std::min(count, bytes_.size())); }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

PerfRing::PerfRing(uint32_t cpu, std::span<const uint16_t> tracepoints, size_t bytes) : cpu_(cpu) {
  for (;; bytes /= 2) {
    Descriptor first(open_event(tracepoints.front(), cpu, bytes));
    if (first.number() < 0) refuse(errno);
    void* memory = mmap(nullptr, bytes + page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, first.number(), 0);
    if (memory != MAP_FAILED) {
      events_.push_back(std::move(first));
      memory_ = static_cast<std::byte*>(memory);
      bytes_ = bytes;
      break;
    }
    if (bytes <= kRingBytesMin) throw std::runtime_error(std::string("no memory for a ring: ") + std::strerror(errno));
  }
  try {
    for (const auto tracepoint : tracepoints.subspan(1)) {
      Descriptor next(open_event(tracepoint, cpu, bytes_));
      if (next.number() < 0 || ioctl(next.number(), PERF_EVENT_IOC_SET_OUTPUT, descriptor()) != 0) refuse(errno);
      events_.push_back(std::move(next));
    }
  } catch (...) {
    munmap(memory_, bytes_ + page_bytes());
    throw;
  }
  record_.resize(UINT16_MAX);
}

PerfRing::PerfRing(PerfRing&& other) noexcept
    : cpu_(other.cpu_),
      events_(std::move(other.events_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      record_(std::move(other.record_)) {}

PerfRing::~PerfRing() {
  if (memory_ != nullptr) munmap(memory_, bytes_ + page_bytes());
}

void PerfRing::enable() const {
  for (const auto& event : events_) ioctl(event.number(), PERF_EVENT_IOC_ENABLE, 0);
}

void PerfRing::disable() const {
  for (const auto& event : events_) ioctl(event.number(), PERF_EVENT_IOC_DISABLE, 0);
}

void PerfRing::drain(const Hearing& hearing) {
  auto* state = reinterpret_cast<perf_event_mmap_page*>(memory_);
  const std::span<const std::byte> ring(memory_ + page_bytes(), bytes_);
  const uint64_t head = std::atomic_ref(state->data_head).load(std::memory_order_acquire);
  uint64_t tail = state->data_tail;
  while (tail < head) {
    // A record may continue at the beginning of the ring.
    const auto copy = [&](size_t count) {
      const size_t place = tail & (bytes_ - 1);
      const size_t first = std::min(count, bytes_ - place);
      std::memcpy(record_.data(), ring.data() + place, first);
      std::memcpy(record_.data() + first, ring.data(), count - first);
    };
    perf_event_header header{};
    copy(sizeof header);
    std::memcpy(&header, record_.data(), sizeof header);
    if (header.size < sizeof header) break;  // never happens unless the ring is damaged
    copy(header.size);
    hear(std::span(record_).first(header.size), hearing);
    tail += header.size;
  }
  std::atomic_ref(state->data_tail).store(tail, std::memory_order_release);
}

void PerfRing::hear(std::span<const std::byte> record, const Hearing& hearing) const {
  Reader reader(record);
  const auto header = reader.take<perf_event_header>();
  if (header.type == PERF_RECORD_SAMPLE) {
    reader.take<uint32_t>();  // the process
    Sample sample;
    sample.thread = reader.take<int32_t>();
    sample.time_ns = reader.take<int64_t>();
    sample.cpu = reader.take<uint32_t>();
    reader.take<uint32_t>();
    sample.raw = reader.rest(reader.take<uint32_t>());
    hearing.sample(sample);
  } else if (header.type == PERF_RECORD_LOST) {
    reader.take<uint64_t>();  // of which event
    const auto count = reader.take<uint64_t>();
    reader.take<uint64_t>();  // process and thread
    hearing.lost(reader.take<int64_t>(), cpu_, count);
  }
}

}  // namespace lagometer::scheduler
