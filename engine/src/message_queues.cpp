// SPDX-License-Identifier: Apache-2.0
#include "message_queues.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lagometer::supervisor {

namespace {

constexpr const char* kMounted = "/dev/mqueue";
constexpr long kMagic = 0x19800202;  // MQUEUE_MAGIC of linux/magic.h
// From linux/mount.h, which can't be included together with glibc's sys/mount.h before 2.36.
constexpr unsigned int kOpenCloexec = 1;
constexpr unsigned int kMountCloexec = 1;
constexpr unsigned int kConfigCreate = 6;

/// A mount that is not attached anywhere: the descriptor of its root, or -1 and errno.
int detached_view() noexcept {
  const auto context = static_cast<int>(syscall(SYS_fsopen, "mqueue", kOpenCloexec));
  if (context < 0) return -1;
  int view = -1;
  if (syscall(SYS_fsconfig, context, kConfigCreate, nullptr, nullptr, 0) == 0)
    view = static_cast<int>(syscall(SYS_fsmount, context, kMountCloexec, 0));
  const int why = errno;
  close(context);
  errno = why;
  return view;
}

}  // namespace

MessageQueueFolder::MessageQueueFolder(bool own_first) {
  if (own_first) view_ = detached_view();
  struct statfs mounted{};
  if (view_ < 0 && statfs(kMounted, &mounted) == 0 && static_cast<long>(mounted.f_type) == kMagic) {
    path_ = kMounted;
    return;
  }
  if (view_ < 0) view_ = detached_view();
  if (view_ >= 0)
    path_ = "/proc/self/fd/" + std::to_string(view_);
  else
    obstacle_ = std::string("message queues that are left behind can't be seen (") + std::strerror(errno) +
                "): mount -t mqueue none /dev/mqueue";
}

MessageQueueFolder::~MessageQueueFolder() {
  if (view_ >= 0) close(view_);
}

}  // namespace lagometer::supervisor
