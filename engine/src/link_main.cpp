// SPDX-License-Identifier: Apache-2.0
// `lagometer-link DEVICE TAP KEY=VALUE…`: the user-space half of an emulated link.
//
// What leaves by DEVICE is sent to TAP (by tc, which whoever starts this sets up once the first line is written). Each
// frame is held for as long as the profile says, or dropped, and then put onto DEVICE, past its queues and filters. The
// frames are whole, so fragments, multicast and the MTU stay as they are. It ends on SIGTERM, and says what it did.
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
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "link_model.hpp"

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

struct Options {
  std::string device;
  std::string tap;
  Profile profile;
  uint64_t seed = 1;
};

Options parse(int count, char** words) {
  if (count < 3) throw std::runtime_error("usage: lagometer-link DEVICE TAP KEY=VALUE…");
  Options options{.device = words[1], .tap = words[2], .profile = {}, .seed = 1};
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

/// A socket whose frames go straight to the device: no queue, and not to the filter that sent them here.
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

class Link {
 public:
  explicit Link(const Options& options)
      : model_(options.profile, options.seed), tap_(open_tap(options.tap)), exit_(open_exit(options.device)) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() {
    close(tap_);
    close(exit_);
  }

  void run(int signals) {
    std::array<pollfd, 2> events = {pollfd{.fd = tap_, .events = POLLIN, .revents = 0},
                                    pollfd{.fd = signals, .events = POLLIN, .revents = 0}};
    while (events[1].revents == 0) {
      take();
      release();
      timespec wait{};
      if (!held_.empty()) {
        const int64_t left_ns = std::max<int64_t>(0, held_.front().due_ns - clock_ns(CLOCK_MONOTONIC));
        wait = {.tv_sec = left_ns / 1'000'000'000, .tv_nsec = left_ns % 1'000'000'000};
      }
      if (ppoll(events.data(), events.size(), held_.empty() ? nullptr : &wait, nullptr) < 0 && errno != EINTR)
        fail("waiting for frames");
      ++wakes_[sched_getcpu()];
    }
  }

  json did() const {
    json cpus = json::object();
    for (const auto& [cpu, wakes] : wakes_) cpus[std::to_string(cpu)] = wakes;
    return {{"frames", frames_},
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
  }

 private:
  /// Reads what has come, a bounded number of frames, so that those that are due are not held up.
  void take() {
    for (int count = 0; count < kReadsAtOnce; ++count) {
      const ssize_t size = read(tap_, buffer_.data(), buffer_.size());
      if (size <= 0) return;
      ++frames_;
      bytes_ += static_cast<uint64_t>(size);
      const int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
      const Fate fate = model_.next(now_ns);
      if (fate.copies == 0) {
        ++lost_;
        continue;
      }
      duplicated_ += static_cast<uint64_t>(fate.copies - 1);
      if (fate.overtakes) ++overtaking_;
      if (fate.overtakes || (fate.due_ns <= now_ns && held_.empty())) {
        send(buffer_.data(), static_cast<size_t>(size), fate.copies);
      } else if (held_bytes_ + static_cast<size_t>(size) > kHeldBytesMax) {
        ++overflowed_;
      } else {
        held_bytes_ += static_cast<size_t>(size);
        held_.push_back(
            {.due_ns = fate.due_ns, .copies = fate.copies, .frame = {buffer_.data(), buffer_.data() + size}});
      }
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
    for (int copy = 0; copy < copies; ++copy) {
      if (::send(exit_, frame, size, 0) < 0) ++unsent_;
    }
  }

  Model model_;
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
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1UL);
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, nullptr);
    const int signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
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
