// SPDX-License-Identifier: Apache-2.0
// What a trial on the host's own /dev/shm and among its message queues may leave there when its workers are killed, and
// its removal. In a private machine there is nothing to remove: what is there goes with it.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace lagometer::supervisor {

/// How a file is seen to be in use: memory is mapped or locked, a message queue is open.
enum class Use { kMapped, kOpen };

class SharedMemory {
 public:
  /// Notes what is there now. `patterns` (as in fnmatch) name what the adapters in use make in `folder`; `directory`
  /// was made for the trial and goes whole, or is empty.
  SharedMemory(std::string folder, std::vector<std::string> patterns, std::string directory, Use use = Use::kMapped);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  /// Removes, so that an early end leaves nothing either.
  ~SharedMemory();

  /// Removes the directory, and what matches, is new, is this user's and is in nobody's use any more. Call it when no
  /// worker runs. Returns warnings: what could not be removed or is in use by a process outside of the trial.
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
