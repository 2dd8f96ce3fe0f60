// SPDX-License-Identifier: Apache-2.0
// `lagometer-scheduler FD BYTES`: records what the kernel's scheduler does on every CPU, into the memory of a
// descriptor.
//
// It runs outside the trial's namespaces, with the rights to see all CPUs. Its first line on standard output says
// whether it can record: `{"event":"ready","cpus":n,"system_calls":n}`, or `{"event":"failed","reason":…}`. After the
// line `begin` it records, and writes `{"event":"began"}`. It stops at the end of its standard input; the file is then
// complete (docs/PROTOCOL.md, "The scheduler's file"). In between it sleeps: it only wakes when half of a CPU's ring is
// full.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "perf_ring.hpp"
#include "scheduler_records.hpp"
#include "tracepoints.hpp"

namespace lagometer::scheduler {
namespace {

constexpr size_t kRingsBytes = 128U << 20U;  // of all CPUs together
constexpr size_t kRingBytesMin = 512U << 10U;
constexpr size_t kRingBytesMax = 16U << 20U;
constexpr int kNice = 10;                      // the measured processes go first; the rings have room meanwhile
constexpr uint8_t kInInterrupt = 0x08 | 0x10;  // common_flags: hardirq, softirq
constexpr int64_t kStateMask = 0xFF;           // of prev_state: the bits above it mean that the thread was preempted
constexpr int64_t kGone = 0x10 | 0x20;         // dead, zombie
constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;

/// CLOCK_MONOTONIC of this process minus the kernel's, which stamps the events.
int64_t clock_offset_ns() {
  std::ifstream file("/proc/self/timens_offsets");
  std::string name;
  int64_t seconds = 0, nanoseconds = 0;
  while (file >> name >> seconds >> nanoseconds)
    if (name == "monotonic" || name == "1") return seconds * kNanosecondsPerSecond + nanoseconds;
  return 0;
}

int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec;
}

/// The online CPUs, from a text such as `0-3,6`.
std::vector<uint32_t> online_cpus() {
  std::ifstream file("/sys/devices/system/cpu/online");
  std::vector<uint32_t> found;
  for (std::string part; std::getline(file, part, ',');) {
    const size_t dash = part.find('-');
    const auto first = static_cast<uint32_t>(std::stoul(part));
    const auto last = dash == std::string::npos ? first : static_cast<uint32_t>(std::stoul(part.substr(dash + 1)));
    for (uint32_t cpu = first; cpu <= last; ++cpu) found.push_back(cpu);
  }
  if (found.empty()) throw std::runtime_error("/sys/devices/system/cpu/online can't be read");
  return found;
}

/// The mapped file. Records follow the header, which is updated with their number after each write.
class Output {
 public:
  Output(int descriptor, size_t bytes) : capacity_((bytes - sizeof(Header)) / sizeof(Record)) {
    if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
      throw std::runtime_error("the file can't be made as large");
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED)
      throw std::runtime_error(std::string("the file can't be mapped: ") + std::strerror(errno));
    header_ = static_cast<Header*>(memory);
    records_ = reinterpret_cast<Record*>(header_ + 1);
    *header_ = {};
  }

  void begin(int64_t time_ns, uint32_t cpus) {
    header_->begin_ns = time_ns;
    header_->cpus = cpus;
  }
  void add(const Record& record) {
    if (count_ < capacity_)
      records_[count_++] = record;
    else
      ++header_->overflow;
  }
  void add_lost(uint64_t count) { header_->lost += count; }
  /// The time up to which the events are complete.
  void settle(int64_t time_ns) {
    header_->records = count_;
    if (header_->overflow == 0) header_->end_ns = time_ns;
  }

 private:
  size_t capacity_;
  size_t count_ = 0;
  Header* header_ = nullptr;
  Record* records_ = nullptr;
};

/// Converts samples to records.
class Recorder {
 public:
  Recorder(const std::string& folder, Output& output)
      : switch_(
            read_tracepoint(folder, "sched_switch", {"prev_comm", "prev_pid", "prev_state", "next_comm", "next_pid"})),
        waking_(read_tracepoint(folder, "sched_waking", {"pid", "target_cpu", "common_pid", "common_flags"})),
        born_(read_tracepoint(folder, "sched_wakeup_new", {"pid", "target_cpu", "common_pid"})),
        move_(read_tracepoint(folder, "sched_migrate_task", {"pid", "orig_cpu", "dest_cpu"})),
        offset_ns_(clock_offset_ns()),
        output_(output) {}

  std::array<uint16_t, 4> tracepoints() const { return {switch_.number, waking_.number, born_.number, move_.number}; }

  void hear(const Sample& sample) {
    if (sample.raw.size() < sizeof(uint16_t)) return;
    uint16_t number = 0;
    std::memcpy(&number, sample.raw.data(), sizeof number);
    Record record{.time_ns = sample.time_ns + offset_ns_, .cpu = static_cast<uint16_t>(sample.cpu)};
    if (number == switch_.number) {
      const int64_t state = value(switch_, "prev_state", sample);
      record.kind = Kind::exchange;
      record.thread = thread(switch_, "prev_pid", sample);
      record.other = thread(switch_, "next_pid", sample);
      record.seen_as = sample.thread;
      record.state = (state & kGone) != 0 ? State::gone : (state & kStateMask) != 0 ? State::asleep : State::runnable;
      name(record, record.thread, switch_, "prev_comm", sample);
      name(record, record.other, switch_, "next_comm", sample);
    } else if (number == waking_.number || number == born_.number) {
      const Tracepoint& of = number == waking_.number ? waking_ : born_;
      record.kind = number == waking_.number ? Kind::waking : Kind::born;
      record.thread = thread(of, "pid", sample);
      record.other = thread(of, "common_pid", sample);
      record.target_cpu = static_cast<int32_t>(value(of, "target_cpu", sample));
      record.state = (value(of, "common_flags", sample) & kInInterrupt) != 0 ? State::by_interrupt : State::by_thread;
    } else if (number == move_.number) {
      record.kind = Kind::move;
      record.cpu = static_cast<uint16_t>(value(move_, "orig_cpu", sample));
      record.thread = thread(move_, "pid", sample);
      record.target_cpu = static_cast<int32_t>(value(move_, "dest_cpu", sample));
    } else {
      return;
    }
    output_.add(record);
  }

  void lose(int64_t time_ns, uint32_t cpu, uint64_t count) {
    output_.add_lost(count);
    output_.add({.time_ns = time_ns + offset_ns_, .kind = Kind::lost, .cpu = static_cast<uint16_t>(cpu)});
  }

 private:
  static int64_t value(const Tracepoint& of, std::string_view name, const Sample& sample) {
    const auto found = of.fields.find(name);
    if (found == of.fields.end()) return 0;
    const Field field = found->second;
    if (field.offset + field.bytes > sample.raw.size()) return 0;
    const auto read = [&]<typename Number>(Number number) {
      std::memcpy(&number, sample.raw.data() + field.offset, sizeof number);
      return int64_t{number};
    };
    switch (field.bytes) {
      case 1:
        return read(uint8_t{});
      case 2:
        return read(uint16_t{});
      case 4:
        return read(int32_t{});
      case 8:
        return read(int64_t{});
      default:
        return 0;
    }
  }

  static int32_t thread(const Tracepoint& of, std::string_view name, const Sample& sample) {
    return static_cast<int32_t>(value(of, name, sample));
  }

  /// Records a thread's name when it is first seen and when it changes.
  void name(const Record& at, int32_t thread, const Tracepoint& of, std::string_view field, const Sample& sample) {
    const auto [offset, bytes] = of.fields.find(field)->second;
    std::array<char, kNameBytes> text{};
    if (thread == 0 || offset + bytes > sample.raw.size()) return;
    std::memcpy(text.data(), sample.raw.data() + offset, std::min(bytes, kNameBytes - 1));
    const auto [place, is_new] = names_.try_emplace(thread, text);
    if (!is_new && place->second == text) return;
    place->second = text;
    Record record{.time_ns = at.time_ns, .kind = Kind::name, .cpu = at.cpu, .thread = thread};
    std::memcpy(reinterpret_cast<std::byte*>(&record) + offsetof(Record, other), text.data(), kNameBytes);
    output_.add(record);
  }

  Tracepoint switch_, waking_, born_, move_;
  int64_t offset_ns_;
  Output& output_;
  std::unordered_map<int32_t, std::array<char, kNameBytes>> names_;
};

void say(const nlohmann::json& what) { std::cout << what.dump() << std::endl; }

/// Whether standard input has ended; `began`: a line was read.
bool input_ended(bool& began) {
  std::array<char, 256> text{};
  const ssize_t count = read(STDIN_FILENO, text.data(), text.size());
  began = began || count > 0;
  return count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
}

/// The number of the tracepoint at the end of each system call, by which the agent counts those of the workers; 0: the
/// kernel has none.
uint16_t number_of_system_calls(const std::string& folder) {
  try {
    return read_tracepoint(folder, "sys_exit", {"id", "ret"}, "raw_syscalls").number;
  } catch (const std::runtime_error&) {
    return 0;
  }
}

void record(Recorder& recorder, Output& output, std::vector<PerfRing>& rings) {
  const Hearing hearing{
      .sample = [&](const Sample& sample) { recorder.hear(sample); },
      .lost = [&](int64_t time_ns, uint32_t cpu, uint64_t count) { recorder.lose(time_ns, cpu, count); },
  };
  std::vector<pollfd> awaited{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
  for (const auto& ring : rings) awaited.push_back({.fd = ring.descriptor(), .events = POLLIN, .revents = 0});
  bool began = false;
  for (bool ended = false; !ended;) {
    if (poll(awaited.data(), awaited.size(), -1) < 0 && errno != EINTR) throw std::runtime_error(std::strerror(errno));
    if (awaited.front().revents != 0) {
      const bool before = began;
      ended = input_ended(began);
      if (began && !before) {
        for (const auto& ring : rings) ring.enable();
        output.begin(now_ns(), static_cast<uint32_t>(rings.size()));
        say({{"event", "began"}});
      }
    }
    // Everything that happened before this moment is now in the rings.
    const int64_t time_ns = now_ns();
    if (ended)
      for (const auto& ring : rings) ring.disable();
    if (!began) continue;
    for (auto& ring : rings) ring.drain(hearing);
    output.settle(time_ns);
  }
}

int run(int count, char** words) {
  try {
    if (count != 3) throw std::runtime_error("usage: lagometer-scheduler FD BYTES");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) throw std::runtime_error("it can't be made to end with its parent");
    setpriority(PRIO_PROCESS, 0, kNice);
    const size_t bytes = std::stoull(words[2]);
    if (bytes < 2 * sizeof(Header)) throw std::runtime_error("BYTES is too small");
    Output output(std::stoi(words[1]), bytes);
    const std::string folder = tracing_folder();
    Recorder recorder(folder, output);
    const auto cpus = online_cpus();
    const size_t share = std::bit_floor(kRingsBytes / cpus.size());
    const auto tracepoints = recorder.tracepoints();
    std::vector<PerfRing> rings;
    rings.reserve(cpus.size());
    for (const auto cpu : cpus) rings.emplace_back(cpu, tracepoints, std::clamp(share, kRingBytesMin, kRingBytesMax));
    say({{"event", "ready"}, {"cpus", cpus.size()}, {"system_calls", number_of_system_calls(folder)}});
    record(recorder, output, rings);
    return 0;
  } catch (const std::exception& error) {
    say({{"event", "failed"}, {"reason", error.what()}});
    return 1;
  }
}

}  // namespace
}  // namespace lagometer::scheduler

int main(int count, char** words) { return lagometer::scheduler::run(count, words); }
