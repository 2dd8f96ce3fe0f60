// SPDX-License-Identifier: Apache-2.0
// Calls of the C library that wait, and calls that end another thread's wait. Waits that ended without an event are not
// recorded.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>

#include "journal.hpp"
#include "next.hpp"

// Older symbols with these names use conditions of another size. Architectures that came later have only one version.
#define LAGOMETER_CONDITION_VERSION "GLIBC_2.3.2"

namespace lagometer::probes {
namespace {

template <typename Act>
int wait(Act&& act) {
  if (!is_on()) return act();
  Entered entered;
  const int ready = act();
  if (ready <= 0) return ready;
  entered.left();
  CallRecord record{};
  record.descriptor = -1;
  record.result = ready;
  entered.write(Call::wait, record);
  return ready;
}

template <typename Act>
int on_condition(Call call, const pthread_cond_t* condition, Act&& act) {
  if (!is_on()) return act();
  Entered entered;
  const int result = act();
  entered.left();
  CallRecord record{};
  record.descriptor = -1;
  record.result = result;
  record.object = reinterpret_cast<uint64_t>(condition);
  if (result == 0) entered.write(call, record);
  return result;
}

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

LAGOMETER_PROBE int poll(pollfd* descriptors, nfds_t count, int timeout) {
  static constinit Next<int(pollfd*, nfds_t, int)> next("poll");
  return wait([&] { return next(descriptors, count, timeout); });
}

LAGOMETER_PROBE int __poll_chk(pollfd* descriptors, nfds_t count, int timeout, size_t room) {
  static constinit Next<int(pollfd*, nfds_t, int, size_t)> next("__poll_chk");
  return wait([&] { return next(descriptors, count, timeout, room); });
}

LAGOMETER_PROBE int ppoll(pollfd* descriptors, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  static constinit Next<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> next("ppoll");
  return wait([&] { return next(descriptors, count, timeout, mask); });
}

LAGOMETER_PROBE int select(int count, fd_set* readable, fd_set* writable, fd_set* odd, timeval* timeout) {
  static constinit Next<int(int, fd_set*, fd_set*, fd_set*, timeval*)> next("select");
  return wait([&] { return next(count, readable, writable, odd, timeout); });
}

LAGOMETER_PROBE int pselect(int count, fd_set* readable, fd_set* writable, fd_set* odd, const timespec* timeout,
                            const sigset_t* mask) {
  static constinit Next<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> next("pselect");
  return wait([&] { return next(count, readable, writable, odd, timeout, mask); });
}

LAGOMETER_PROBE int epoll_wait(int set, epoll_event* events, int count, int timeout) {
  static constinit Next<int(int, epoll_event*, int, int)> next("epoll_wait");
  return wait([&] { return next(set, events, count, timeout); });
}

LAGOMETER_PROBE int epoll_pwait(int set, epoll_event* events, int count, int timeout, const sigset_t* mask) {
  static constinit Next<int(int, epoll_event*, int, int, const sigset_t*)> next("epoll_pwait");
  return wait([&] { return next(set, events, count, timeout, mask); });
}

LAGOMETER_PROBE int epoll_pwait2(int set, epoll_event* events, int count, const timespec* timeout,
                                 const sigset_t* mask) {
  static constinit Next<int(int, epoll_event*, int, const timespec*, const sigset_t*)> next("epoll_pwait2");
  return wait([&] { return next(set, events, count, timeout, mask); });
}

LAGOMETER_PROBE int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  static constinit Next<int(pthread_cond_t*, pthread_mutex_t*)> next("pthread_cond_wait", LAGOMETER_CONDITION_VERSION);
  return on_condition(Call::block, condition, [&] { return next(condition, mutex); });
}

LAGOMETER_PROBE int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* until) {
  static constinit Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)> next("pthread_cond_timedwait",
                                                                                      LAGOMETER_CONDITION_VERSION);
  return on_condition(Call::block, condition, [&] { return next(condition, mutex, until); });
}

LAGOMETER_PROBE int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                           const timespec* until) {
  static constinit Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)> next(
      "pthread_cond_clockwait");
  return on_condition(Call::block, condition, [&] { return next(condition, mutex, clock, until); });
}

LAGOMETER_PROBE int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  static constinit Next<int(pthread_cond_t*)> next("pthread_cond_signal", LAGOMETER_CONDITION_VERSION);
  return on_condition(Call::notify, condition, [&] { return next(condition); });
}

LAGOMETER_PROBE int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  static constinit Next<int(pthread_cond_t*)> next("pthread_cond_broadcast", LAGOMETER_CONDITION_VERSION);
  return on_condition(Call::notify, condition, [&] { return next(condition); });
}

// The C library's generic system call: threads of Rust and C++ wait on futexes through it. Its six numbers are passed
// on unchanged, and everything but futexes by a jump: none of our frames is on the stack while a vfork() returns twice.
LAGOMETER_PROBE long any_system_call(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long any_system_call(long number, long a, long b, long c, long d, long e, long f) {
  static constinit Next<long(long, long, long, long, long, long, long)> next("syscall");
  auto* const function = next.get();
  if (number != SYS_futex || !is_on()) return function(number, a, b, c, d, e, f);
  const long operation = b & FUTEX_CMD_MASK;
  const bool blocks = operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET;
  if (!blocks && operation != FUTEX_WAKE && operation != FUTEX_WAKE_BITSET) return function(number, a, b, c, d, e, f);
  Entered entered;
  const long result = function(number, a, b, c, d, e, f);
  if (blocks ? result != 0 : result <= 0) return result;
  entered.left();
  CallRecord record{};
  record.descriptor = -1;
  record.result = result;
  record.object = static_cast<uint64_t>(a);
  entered.write(blocks ? Call::block : Call::notify, record);
  return result;
}
