// SPDX-License-Identifier: Apache-2.0
// What a trial may leave in the host's /dev/shm and message queues if its workers are killed, and how to remove it. In
// a private machine there is nothing to remove: it disappears with the machine.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace lagometer::supervisor {

/// How to tell that a file is in use: memory is mapped or locked, a message queue is open.
enum class Use { kMapped, kOpen };

class SharedMemory {
 public:
  /// Notes what exists now. `patterns` (as in fnmatch) match what the used adapters create in `folder`; `directory` was
  /// created for the trial and is removed completely, or is empty.
  SharedMemory(std::string folder, std::vector<std::string> patterns, std::string directory, Use use = Use::kMapped);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  /// Removes, so that an early end also leaves nothing.
  ~SharedMemory();

  /// Removes the directory, and every file that matches, is new, belongs to this user and is no longer in use. Call it
  /// when no worker is running. Returns warnings: what could not be removed or is in use by a process outside the
  /// trial.
  std::vector<std::string> remove();

 private:
  [[nodiscard]] std::vector<std::string> left_behind() const;

  std::string folder_;
  std::vector<std::string> patterns_;
  std::string directory_;
  Use use_;
  std::map<std::string, ino_t> before_;
};

}  // namespace lagometer::supervisor
