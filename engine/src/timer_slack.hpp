// SPDX-License-Identifier: Apache-2.0
// Lets a thread's sleeps end on time. By default the kernel may end each up to 50 µs late, to wake up less often.
#pragma once

#include <sys/prctl.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace lagometer {

/// Sets the calling thread's timer slack to the least, and reads it back. Threads that it starts inherit it; those of
/// SCHED_FIFO have none. Returns why sleeps may end late; empty: they don't.
inline std::string sleep_on_time() {
  if (prctl(PR_SET_TIMERSLACK, 1UL) != 0) return std::string("timer slack not set: ") + std::strerror(errno);
  const int slack_ns = prctl(PR_GET_TIMERSLACK);
  if (slack_ns < 0) return std::string("timer slack can't be read: ") + std::strerror(errno);
  if (slack_ns <= 1) return {};
  return "timer slack is " + std::to_string(slack_ns) + " ns although 1 ns was set: sleeps end late";
}

}  // namespace lagometer
