// SPDX-License-Identifier: Apache-2.0
// Where the POSIX message queues of this process's IPC namespace can be seen as files.
#pragma once

#include <string>

namespace lagometer::supervisor {

/// /dev/mqueue if it is mounted, otherwise a private mount that nobody else sees and that needs root. `own_first`: the
/// other way round, for a process whose namespace is younger than that mount.
class MessageQueueFolder {
 public:
  explicit MessageQueueFolder(bool own_first = false);
  ~MessageQueueFolder();
  MessageQueueFolder(const MessageQueueFolder&) = delete;
  MessageQueueFolder& operator=(const MessageQueueFolder&) = delete;
  /// The folder; empty if the queues can't be seen, then obstacle() says why.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& obstacle() const noexcept { return obstacle_; }

 private:
  int view_ = -1;
  std::string path_;
  std::string obstacle_;
};

}  // namespace lagometer::supervisor
