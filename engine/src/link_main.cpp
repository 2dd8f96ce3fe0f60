// SPDX-License-Identifier: Apache-2.0
// `lagometer-link DEVICE TAP KEY=VALUE…`: the user-space half of an emulated link.
//
// tc sends everything that leaves through DEVICE to TAP (the starting program sets that up once the first line is
// written). Each frame is held for as long as the profile says, or dropped, and then put onto DEVICE, past its queues
// and filters. The frames are whole, so fragments, multicast and the MTU stay as they are. It ends on SIGTERM and
// reports what it did.
//
// With `change=…` or `trace=FILE` the link changes over time. Then the first line on standard input is the time of
// CLOCK_MONOTONIC, in ns, to which those times are relative.
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "link_line.hpp"
#include "link_model.hpp"
#include "timer_slack.hpp"

namespace lagometer::link {
namespace {

using nlohmann::json;

constexpr size_t kFrameBytesMax = 66'000;
constexpr size_t kHeldBytesMax = 256U << 20U;
constexpr int kReadsAtOnce = 64;
constexpr int kPriority = 50;  // a cable does not wait for a CPU
constexpr int64_t kLate_ns = 1'000'000;

int64_t clock_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

/// What applies from a time on, relative to the start, which is given later.
struct Change {
  int64_t at_ns = 0;
  int64_t rate_bps = 0;
  int64_t delay_ns = 0;
  int64_t jitter_ns = 0;
  double loss = 0;
};

struct Options {
  std::string device;
  std::string tap;
  Profile profile;
  LineProfile line;
  std::vector<Change> changes;
  uint64_t seed = 1;
};

Change parse_change(const std::string& text) {
  Change change;
  if (std::sscanf(text.c_str(), "%ld,%ld,%ld,%ld,%lf", &change.at_ns, &change.rate_bps, &change.delay_ns,
                  &change.jitter_ns, &change.loss) != 5)
    throw std::runtime_error("no change: '" + text + "'");
  return change;
}

std::vector<int64_t> read_trace(const std::string& path) {
  std::ifstream file(path);
  std::vector<int64_t> found;
  for (int64_t at_ms = 0; file >> at_ms;) found.push_back(at_ms);
  if (found.empty() || !file.eof() || found.back() <= 0) throw std::runtime_error("no trace of a capacity: " + path);
  return found;
}

Options parse(int count, char** words) {
  if (count < 3) throw std::runtime_error("usage: lagometer-link DEVICE TAP KEY=VALUE…");
  Options options{.device = words[1], .tap = words[2], .profile = {}, .line = {}, .changes = {}, .seed = 1};
  const std::map<std::string, Distribution> shapes = {{"normal", Distribution::kNormal},
                                                      {"uniform", Distribution::kUniform},
                                                      {"exponential", Distribution::kExponential}};
  Profile& profile = options.profile;
  for (int index = 3; index < count; ++index) {
    const std::string word = words[index];
    const std::string key = word.substr(0, word.find('='));
    const std::string value = word.substr(key.size() < word.size() ? key.size() + 1 : key.size());
    if (key == "delay_ns")
      profile.delay_ns = std::stoll(value);
    else if (key == "jitter_ns")
      profile.jitter_ns = std::stoll(value);
    else if (key == "distribution")
      profile.distribution = shapes.at(value);
    else if (key == "loss")
      profile.loss = std::stod(value);
    else if (key == "burst")
      profile.burst = std::stod(value);
    else if (key == "reorder")
      profile.reorder = std::stod(value);
    else if (key == "duplicate")
      profile.duplicate = std::stod(value);
    else if (key == "rate_bps")
      options.line.rate_bps = std::stoll(value);
    else if (key == "overhead_bytes")
      options.line.overhead_bytes = std::stoll(value);
    else if (key == "saved_bytes")
      options.line.saved_bytes = std::stoll(value);
    else if (key == "queue_bytes")
      options.line.queue_bytes = std::stoll(value);
    else if (key == "trace")
      options.line.trace_ms = read_trace(value);
    else if (key == "change")
      options.changes.push_back(parse_change(value));
    else if (key == "seed")
      options.seed = std::stoull(value);
    else
      throw std::runtime_error("unknown key '" + key + "'");
  }
  return options;
}

int open_tap(const std::string& name) {
  const int descriptor = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) fail("/dev/net/tun can't be opened");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), sizeof request.ifr_name - 1);
  if (ioctl(descriptor, TUNSETIFF, &request) != 0) fail("the device " + name + " can't be made");
  return descriptor;
}

/// A socket whose frames go straight to the device, past the queue and the filter that sent them here.
int open_exit(const std::string& device) {
  const int descriptor = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (descriptor < 0) fail("no packet socket can be opened");
  const int yes = 1;
  if (setsockopt(descriptor, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes) != 0)
    fail("queues of " + device + " can't be passed by");
  sockaddr_ll where{};
  where.sll_family = AF_PACKET;
  where.sll_ifindex = static_cast<int>(if_nametoindex(device.c_str()));
  if (where.sll_ifindex == 0) fail("there is no device " + device);
  if (bind(descriptor, reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) fail("no way out by " + device);
  return descriptor;
}

struct Held {
  int64_t due_ns = 0;
  int copies = 1;
  std::vector<unsigned char> frame;
};

/// What happened between two changes. came: frames that arrived at the link; full: frames for which the queue had no
/// room; lost: by chance, or in an outage; carried: frames that left it. changed_ns: when the change took effect,
/// relative to the start; nothing if it did not.
struct Interval {
  std::optional<int64_t> changed_ns;
  uint64_t came = 0, full = 0, lost = 0, carried = 0, carried_bytes = 0;
};

class Link {
 public:
  explicit Link(const Options& options)
      : model_(options.profile, options.seed),
        line_(options.line),
        changes_(options.changes),
        timed_(!options.changes.empty() || !options.line.trace_ms.empty()),
        intervals_(options.changes.size() + 1),
        tap_(open_tap(options.tap)),
        exit_(open_exit(options.device)) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    close(tap_);
    close(exit_);
  }

  void run(int signals) {
    std::array<pollfd, 3> events = {pollfd{.fd = tap_, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = signals, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = timed_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
    while (events[1].revents == 0) {
      if (events[2].revents != 0) {
        hear_start();
        events[2].fd = -1;
        events[2].revents = 0;
      }
      take();
      advance(clock_ns(CLOCK_MONOTONIC));
      release();
      timespec wait{};
      const int64_t next_ns = next();
      if (next_ns != kNever_ns) {
        const int64_t left_ns = std::max<int64_t>(0, next_ns - clock_ns(CLOCK_MONOTONIC));
        wait = {.tv_sec = left_ns / kNsPerS, .tv_nsec = left_ns % kNsPerS};
      }
      if (ppoll(events.data(), events.size(), next_ns == kNever_ns ? nullptr : &wait, nullptr) < 0 && errno != EINTR)
        fail("waiting for frames");
      ++wakes_[sched_getcpu()];
    }
  }

  json did() const {
    json cpus = json::object();
    for (const auto& [cpu, wakes] : wakes_) cpus[std::to_string(cpu)] = wakes;
    json found = {{"frames", frames_},
                  {"bytes", bytes_},
                  {"lost", lost_},
                  {"overtaking", overtaking_},
                  {"duplicated", duplicated_},
                  {"overflowed", overflowed_},
                  {"unsent", unsent_},
                  {"late", late_},
                  {"late_max_ns", late_max_ns_},
                  {"cpu_ns", clock_ns(CLOCK_PROCESS_CPUTIME_ID)},
                  {"wakes_by_cpu", cpus}};
    if (timed_) {
      found["changes"] = changes_did();
      found["traced"] = line_.traced();
    }
    return found;
  }

 private:
  [[nodiscard]] json changes_did() const {
    json found = json::array();
    for (size_t place = 0; place < changes_.size(); ++place) {
      const Interval& interval = intervals_[place + 1];
      const json late_ns = interval.changed_ns ? json(*interval.changed_ns - changes_[place].at_ns) : json();
      found.push_back({{"at_ns", changes_[place].at_ns},
                       {"late_ns", late_ns},
                       {"rate_bps", changes_[place].rate_bps},
                       {"delay_ns", changes_[place].delay_ns},
                       {"jitter_ns", changes_[place].jitter_ns},
                       {"loss", changes_[place].loss},
                       {"came", interval.came},
                       {"full", interval.full},
                       {"lost", interval.lost},
                       {"carried", interval.carried},
                       {"carried_bytes", interval.carried_bytes}});
    }
    return found;
  }

  /// Reads the time to which the times of changes are relative.
  void hear_start() {
    std::array<char, 32> text{};
    if (read(STDIN_FILENO, text.data(), text.size() - 1) <= 0) return;
    start_ns_ = std::stoll(text.data());
    change_ns_ = changes_.empty() ? kNever_ns : start_ns_ + changes_.front().at_ns;
    trace_ns_ = start_ns_;
  }

  [[nodiscard]] int64_t next() const {
    const int64_t due_ns = held_.empty() ? kNever_ns : held_.front().due_ns;
    return std::min({due_ns, line_.departure_ns(), change_ns_, trace_ns_});
  }

  /// Does everything that is due by now, in order of time: changes, and frames that leave the queue.
  void advance(int64_t now_ns) {
    while (true) {
      const int64_t departure_ns = line_.departure_ns();
      if (trace_ns_ <= now_ns && trace_ns_ <= departure_ns) {
        line_.begin_trace(trace_ns_);
        trace_ns_ = kNever_ns;
      } else if (change_ns_ <= now_ns && change_ns_ <= departure_ns) {
        change();
      } else if (departure_ns <= now_ns) {
        const Waiting first = line_.pop();
        pass(departure_ns, now_ns, first.frame.data(), first.frame.size());
      } else {
        return;
      }
    }
  }

  /// Allocates nothing: all memory was allocated before the first frame.
  void change() {
    const Change& to = changes_[changed_];
    model_.change(to.delay_ns, to.jitter_ns, to.loss);
    line_.set_rate(change_ns_, to.rate_bps);
    intervals_[++changed_].changed_ns = clock_ns(CLOCK_MONOTONIC) - start_ns_;
    change_ns_ = changed_ < changes_.size() ? start_ns_ + changes_[changed_].at_ns : kNever_ns;
  }

  /// Reads arrived frames, a bounded number, so that frames that are due are not held up.
  void take() {
    for (int count = 0; count < kReadsAtOnce; ++count) {
      const ssize_t size = read(tap_, buffer_.data(), buffer_.size());
      if (size <= 0) return;
      ++frames_;
      bytes_ += static_cast<uint64_t>(size);
      const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
      if (timed_) advance(now_ns);
      ++intervals_[changed_].came;
      if (!line_.limits())
        pass(now_ns, now_ns, buffer_.data(), static_cast<size_t>(size));
      else if (!line_.push(now_ns, buffer_.data(), static_cast<size_t>(size)))
        ++intervals_[changed_].full;
    }
  }

  /// A frame has left the queue: it is lost, or held until it arrives.
  void pass(int64_t left_ns, int64_t now_ns, const unsigned char* frame, size_t size) {
    const Fate fate = model_.next(left_ns);
    if (fate.copies == 0) {
      ++lost_;
      ++intervals_[changed_].lost;
      return;
    }
    duplicated_ += static_cast<uint64_t>(fate.copies - 1);
    if (fate.overtakes) ++overtaking_;
    if (fate.overtakes || (fate.due_ns <= now_ns && held_.empty())) {
      send(frame, size, fate.copies);
    } else if (held_bytes_ + size > kHeldBytesMax) {
      ++overflowed_;
    } else {
      held_bytes_ += size;
      held_.push_back({.due_ns = fate.due_ns, .copies = fate.copies, .frame = {frame, frame + size}});
    }
  }

  void release() {
    while (!held_.empty()) {
      Held& next = held_.front();
      const int64_t late_ns = clock_ns(CLOCK_MONOTONIC) - next.due_ns;
      if (late_ns < 0) return;
      if (late_ns > kLate_ns) ++late_;
      late_max_ns_ = std::max(late_max_ns_, late_ns);
      send(next.frame.data(), next.frame.size(), next.copies);
      held_bytes_ -= next.frame.size();
      held_.pop_front();
    }
  }

  void send(const unsigned char* frame, size_t size, int copies) {
    Interval& interval = intervals_[changed_];
    for (int copy = 0; copy < copies; ++copy) {
      if (::send(exit_, frame, size, 0) < 0) {
        ++unsent_;
      } else {
        ++interval.carried;
        interval.carried_bytes += size;
      }
    }
  }

  Model model_;
  Line line_;
  std::vector<Change> changes_;
  bool timed_;
  std::vector<Interval> intervals_;  // before the first change, and after each change
  size_t changed_ = 0;
  int64_t start_ns_ = 0, change_ns_ = kNever_ns, trace_ns_ = kNever_ns;
  int tap_;
  int exit_;
  std::array<unsigned char, kFrameBytesMax> buffer_{};
  std::deque<Held> held_;  // due in this order
  size_t held_bytes_ = 0;
  uint64_t frames_ = 0, bytes_ = 0, lost_ = 0, overtaking_ = 0, duplicated_ = 0, overflowed_ = 0, unsent_ = 0,
           late_ = 0;
  int64_t late_max_ns_ = 0;
  std::map<int, uint64_t> wakes_;
};

void say(const json& what) { std::cout << what.dump() << '\n' << std::flush; }

int run(int count, char** words) {
  try {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) fail("prctl(PR_SET_PDEATHSIG)");
    if (const std::string late = sleep_on_time(); !late.empty()) throw std::runtime_error(late);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    const int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) fail("signalfd");
    Link link(parse(count, words));
    const sched_param priority{.sched_priority = kPriority};
    const bool realtime = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    say({{"event", "open"}, {"realtime", realtime}});
    link.run(signals);
    say({{"event", "ended"}, {"did", link.did()}});
    return 0;
  } catch (const std::exception& error) {
    say({{"event", "failed"}, {"message", error.what()}});
    return 1;
  }
}

}  // namespace
}  // namespace lagometer::link

int main(int count, char** words) { return lagometer::link::run(count, words); }
