// SPDX-License-Identifier: Apache-2.0
// Turns a child of the supervisor into a program of the trial, within the control group that limits it.
#pragma once

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace lagometer::supervisor {

/// Ends the child, and says why on its standard error.
[[noreturn]] inline void refuse(const char* what) {
  std::fprintf(stderr, "lagometer-supervisor: %s: %s\n", what, std::strerror(errno));
  _exit(127);
}

/// In a child, after fork: what every process of a trial does first.
inline void detach(pid_t supervisor) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) refuse("a program can't be made to end with it");
  if (getppid() != supervisor) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  if (sigprocmask(SIG_SETMASK, &none, nullptr) != 0) refuse("signals can't be unblocked");
}

/// Enters before the program's first instruction, so that none of its threads is outside. `processes`: the group's file
/// cgroup.procs, empty for no group. Ends the process if it can't enter: its figures would be those of no limit.
inline void enter_group(const std::string& processes) {
  if (processes.empty()) return;
  const int file = open(processes.c_str(), O_WRONLY | O_CLOEXEC);
  if (file >= 0 && write(file, "0", 1) == 1) {  // 0: the process that writes, whatever its number is outside
    close(file);
    return;
  }
  std::fprintf(stderr, "can't enter %s: %s\n", processes.c_str(), std::strerror(errno));
  _exit(127);
}

[[noreturn]] inline void execute(const std::vector<std::string>& command, const std::string& group) {
  enter_group(group);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "can't start %s: %s\n", arguments[0], std::strerror(errno));
  _exit(127);
}

}  // namespace lagometer::supervisor
