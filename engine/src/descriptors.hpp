// SPDX-License-Identifier: Apache-2.0
// In a child of the supervisor: puts the descriptors that it was given where its program expects them.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace lagometer::supervisor {

constexpr int kRecords = 3;  // of a worker, after the three standard ones
constexpr int kFirstFree = kRecords + 1;

/// Ends the child, and says why in its log. `what`: which of the program's descriptors.
[[noreturn]] inline void give_up(int log, const char* what, int descriptor) {
  const std::string reason = std::strerror(errno);
  const bool is_open = fcntl(descriptor, F_GETFD) >= 0;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string limited = "raise the limit on open files (ulimit -n), now " + std::to_string(limit.rlim_cur);
  const std::string advice = is_open ? limited : "whoever starts lagometer-supervisor must pass it on open";
  dprintf(log, "lagometer-supervisor: descriptor %d can't become the program's %s: %s; %s\n", descriptor, what,
          reason.c_str(), advice.c_str());
  _exit(127);
}

/// A descriptor that none of the program's own overwrites before it is copied. Any number above them will do; a fixed
/// high one may be above the limit on open files, which is the user's: raising it would change the middleware.
inline int out_of_the_way(int descriptor, const char* what, int log) {
  if (descriptor >= kFirstFree) return descriptor;
  const int moved = fcntl(descriptor, F_DUPFD, kFirstFree);
  if (moved < 0) give_up(log, what, descriptor);
  return moved;
}

/// Standard error comes first: from then on what fails is in the program's log.
inline void place(int source, int target, const char* what) {
  if (dup2(source, target) < 0) give_up(STDERR_FILENO, what, source);
}

/// Closes everything from here on; one by one where the kernel (before 5.9) or a sandbox has no call for it.
inline void close_from(int first) {
  if (close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  const auto end = sysconf(_SC_OPEN_MAX);
  for (int descriptor = first; descriptor < end; ++descriptor) close(descriptor);
}

}  // namespace lagometer::supervisor
