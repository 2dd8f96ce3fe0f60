/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a process, it is a kernel that stamps no datagrams. Nothing that ships loads this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/socket.h>

int setsockopt(int end, int level, int name, const void* value, socklen_t size) {
  static int (*set)(int, int, int, const void*, socklen_t) = 0;
  if (set == 0) *(void**)&set = dlsym(RTLD_NEXT, "setsockopt");
  if (level == SOL_SOCKET && name == SO_TIMESTAMPNS) {
    errno = ENOPROTOOPT;
    return -1;
  }
  return set(end, level, name, value, size);
}
