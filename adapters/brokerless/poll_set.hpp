// SPDX-License-Identifier: Apache-2.0
// What one thread sleeps on: descriptors that a library provides, and a trigger.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "descriptor.hpp"

namespace lagometer::brokerless {

class PollSet {
 public:
  enum class Woken : uint8_t { readable, triggered, timeout };

  PollSet() : trigger_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!trigger_.valid()) throw_system_error("making an eventfd");
    watch(trigger_.get());
  }

  /// Call it before anybody waits.
  void watch(int descriptor) { entries_.push_back({.fd = descriptor, .events = POLLIN, .revents = 0}); }

  /// Sleeps until a descriptor is readable, trigger() was called, or host time `until_ns` is reached. [thread: waiting]
  Woken wait(int64_t until_ns) noexcept {
    constexpr int64_t never_ns = std::numeric_limits<int64_t>::max();
    constexpr int64_t second_ns = 1'000'000'000;
    for (;;) {
      timespec timeout{};
      if (until_ns != never_ns) {
        const int64_t now = now_ns();
        const int64_t left_ns = until_ns > now ? until_ns - now : 0;
        timeout = {.tv_sec = left_ns / second_ns, .tv_nsec = left_ns % second_ns};
      }
      const int count = ppoll(entries_.data(), entries_.size(), until_ns == never_ns ? nullptr : &timeout, nullptr);
      if (count == 0) return Woken::timeout;
      if (count < 0) continue;  // interrupted
      if (entries_.front().revents == 0) return Woken::readable;
      eventfd_t ignored = 0;
      eventfd_read(trigger_.get(), &ignored);
      return Woken::triggered;
    }
  }

  /// Whether the last wait found descriptor n readable, in the order of watch(), from 0. [thread: waiting]
  [[nodiscard]] bool found_readable(size_t place) const noexcept { return entries_[place + 1].revents != 0; }
  /// Ends one wait, the current or the next. [thread: any]
  void trigger() noexcept { eventfd_write(trigger_.get(), 1); }

 private:
  Descriptor trigger_;
  std::vector<pollfd> entries_;  // the first is the trigger's
};

}  // namespace lagometer::brokerless
