/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into the processes of a host, its kernel says that a service keeps its clock, and its wall clock is ahead
 * of the kernel's by LAGOMETER_TEST_WALL_NS. Nothing that ships loads this. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int adjtimex(struct timex* state) {
  const int result = (int)syscall(SYS_adjtimex, state);
  if (result < 0) return result;
  state->status &= ~STA_UNSYNC;
  return TIME_OK;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  const char* const ahead = getenv("LAGOMETER_TEST_WALL_NS");
  if (result != 0 || clock != CLOCK_REALTIME || ahead == NULL) return result;
  const long long ns = time->tv_nsec + atoll(ahead);
  time->tv_sec += ns / 1000000000;
  time->tv_nsec = ns % 1000000000;
  return 0;
}
