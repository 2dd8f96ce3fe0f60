// SPDX-License-Identifier: Apache-2.0
// `lagometer-leftovers PATTERN...`: removes what programs that were killed leave in /dev/shm.
//
// It notes what is there and writes the line `ready`. At the end of its standard input it removes every file that is
// new, matches a pattern, belongs to this user and is not in use, and writes a line for each that had to stay, with the
// reason. Signals for the terminal's programs don't reach it, so it also cleans up after a lagometer that was killed.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "shared_memory.hpp"

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  setsid();
  lagometer::supervisor::SharedMemory memory("/dev/shm", std::vector<std::string>(arguments + 1, arguments + count),
                                             "");
  std::cout << "ready" << std::endl;
  char ignored[64];
  ssize_t read_bytes = 0;
  do {
    read_bytes = read(STDIN_FILENO, ignored, sizeof ignored);
  } while (read_bytes > 0 || (read_bytes < 0 && errno == EINTR));
  for (const std::string& warning : memory.remove()) std::cout << warning << '\n';
  return 0;
}
