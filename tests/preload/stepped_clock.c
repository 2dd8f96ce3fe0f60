/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a process, it shows a wall clock that is set forward by 1 ms every 100 ms, as a broken time service
 * would. All other clocks are the kernel's. Nothing that ships loads it. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long monotonic_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || clock != CLOCK_REALTIME) return result;
  const long long shown = time->tv_nsec + monotonic_ns() / 100000000LL % 1000000LL * 1000000LL;
  time->tv_sec += shown / 1000000000LL;
  time->tv_nsec = shown % 1000000000LL;
  return 0;
}
