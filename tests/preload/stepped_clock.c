/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a process, it shows clocks that move against CLOCK_MONOTONIC, which stays the kernel's. How they move
 * says LAGOMETER_TEST_CLOCK, by 1 ms every 100 ms where nothing else is said:
 *   forward, backward   the wall clock is set, as by a broken time service
 *   suspended           the machine sleeps: boot time and wall clock go on meanwhile
 *   pulled, disciplined CLOCK_MONOTONIC is slower than the hardware's clock, by 1 % (a broken oscillator), or by 4e-4
 *                       (as much as NTP may pull it)
 * LAGOMETER_TEST_CLOCK_SOURCE names a file that is read instead of the kernel's current clock source. Nothing that
 * ships loads this. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long long monotonic_ns(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int moves(const char* how) {
  const char* const wanted = getenv("LAGOMETER_TEST_CLOCK");
  return wanted != NULL && strcmp(wanted, how) == 0;
}

static long long moved_ns(clockid_t clock) {
  const long long steps_ns = monotonic_ns() / 100000000LL % 1000000LL * 1000000LL;
  if (clock == CLOCK_REALTIME && (moves("forward") || moves("suspended"))) return steps_ns;
  if (clock == CLOCK_REALTIME && moves("backward")) return -steps_ns;
  if (clock == CLOCK_BOOTTIME && moves("suspended")) return steps_ns;
  if (clock == CLOCK_MONOTONIC_RAW && moves("pulled")) return monotonic_ns() / 100;
  if (clock == CLOCK_MONOTONIC_RAW && moves("disciplined")) return monotonic_ns() / 2500;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0) return result;
  const long long shown_ns = time->tv_sec * 1000000000LL + time->tv_nsec + moved_ns(clock);
  time->tv_sec = shown_ns / 1000000000LL;
  time->tv_nsec = shown_ns % 1000000000LL;
  return 0;
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const int mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  const char* const source = getenv("LAGOMETER_TEST_CLOCK_SOURCE");
  if (source != NULL && strstr(path, "/current_clocksource") != NULL) path = source;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
