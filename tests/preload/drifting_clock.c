/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into the processes of a host, it gives that host a CLOCK_MONOTONIC of its own: ahead of the kernel's by
 * LAGOMETER_TEST_AHEAD_NS (negative: behind), and faster by LAGOMETER_TEST_DRIFT_PPM from LAGOMETER_TEST_BASE_NS on;
 * the clocks that it is compared with, too, and the kernel's stamps of datagrams. Sleeping until a time is by that
 * clock, too. Nothing that ships loads this.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const long long second_ns = 1000000000LL;

static long long setting(const char* name) {
  const char* const text = getenv(name);
  return text != NULL ? atoll(text) : 0;
}

static long long to_ns(const struct timespec* time) { return time->tv_sec * second_ns + time->tv_nsec; }

static struct timespec to_time(long long ns) {
  const struct timespec time = {.tv_sec = ns / second_ns, .tv_nsec = ns % second_ns};
  return time;
}

static long long drift_ns(long long kernel_ns) {
  return (kernel_ns - setting("LAGOMETER_TEST_BASE_NS")) / 1000 * setting("LAGOMETER_TEST_DRIFT_PPM") / 1000;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  struct timespec kernel;
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result != 0 || syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &kernel) != 0) return result;
  const int is_ours = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME;
  if (is_ours) *time = to_time(to_ns(time) + drift_ns(to_ns(&kernel)) + setting("LAGOMETER_TEST_AHEAD_NS"));
  if (clock == CLOCK_REALTIME) *time = to_time(to_ns(time) + drift_ns(to_ns(&kernel)));
  return 0;
}

/* What a stamp of CLOCK_REALTIME would have been on a host with this clock. */
static struct timespec shown(struct timespec stamp) {
  struct timespec real;
  struct timespec monotonic;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &monotonic);
  return to_time(to_ns(&stamp) + drift_ns(to_ns(&monotonic) - to_ns(&real) + to_ns(&stamp)));
}

ssize_t recvmsg(int end, struct msghdr* message, int flags) {
  static ssize_t (*receive)(int, struct msghdr*, int) = NULL;
  if (receive == NULL) *(void**)&receive = dlsym(RTLD_NEXT, "recvmsg");
  const ssize_t size = receive(end, message, flags);
  for (struct cmsghdr* each = size < 0 ? NULL : CMSG_FIRSTHDR(message); each != NULL;
       each = CMSG_NXTHDR(message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPNS) continue;
    struct timespec stamp;
    memcpy(&stamp, CMSG_DATA(each), sizeof stamp);
    stamp = shown(stamp);
    memcpy(CMSG_DATA(each), &stamp, sizeof stamp);
  }
  return size;
}

/* The kernel's time at which this host's clock shows another. */
static struct timespec real_time(const struct timespec* shown) {
  const long long about_ns = to_ns(shown) - setting("LAGOMETER_TEST_AHEAD_NS");
  return to_time(about_ns - drift_ns(about_ns));
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec* wanted, struct timespec* rest) {
  const int is_ours = clock == CLOCK_MONOTONIC && (flags & TIMER_ABSTIME) != 0;
  const struct timespec until = is_ours ? real_time(wanted) : *wanted;
  return syscall(SYS_clock_nanosleep, clock, flags, &until, rest) == 0 ? 0 : EINTR;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* wanted) {
  int (*wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*) = NULL;
  *(void**)&wait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  const struct timespec until = clock == CLOCK_MONOTONIC ? real_time(wanted) : *wanted;
  return wait(condition, mutex, clock, &until);
}

/* Of a futex the bitset form alone takes a time, the others take a duration. */
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  long given[6];
  for (int i = 0; i < 6; ++i) given[i] = va_arg(rest, long);
  va_end(rest);
  struct timespec until;
  if (number == SYS_futex && (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && given[3] != 0 &&
      (given[1] & FUTEX_CLOCK_REALTIME) == 0) {
    until = real_time((const struct timespec*)given[3]);
    given[3] = (long)&until;
  }
  static long (*call)(long, ...) = NULL;
  if (call == NULL) *(void**)&call = dlsym(RTLD_NEXT, "syscall");
  return call(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
