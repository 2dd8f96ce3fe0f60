/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into every process of a trial, it shows the thread of the node `sink` a CLOCK_MONOTONIC that is 50 ms
 * behind, as CPUs whose counters differ would. All other threads and clocks have the kernel's. Nothing that ships loads
 * it. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BEHIND_NS 50000000LL

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  char name[16] = {0};
  if (result != 0 || clock != CLOCK_MONOTONIC || prctl(PR_GET_NAME, name) != 0) return result;
  if (strcmp(name, "node:sink") != 0) return result;
  const long long shown = time->tv_sec * 1000000000LL + time->tv_nsec - BEHIND_NS;
  time->tv_sec = shown / 1000000000LL;
  time->tv_nsec = shown % 1000000000LL;
  return result;
}
