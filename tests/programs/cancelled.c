// SPDX-License-Identifier: Apache-2.0
// Cancels threads that wait, each in another function of the C library, and then sends itself a byte; it knows nothing
// of lagometer. Ends with the number of the first thread that did not end as it should, or with 0.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 9, TIMED = 11, HOW_MANY = 12, FAILED = 100 };

static int empty[2], full[2], events;
static pthread_mutex_t mutex;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int unlocked;  // what unlocking returned: 0 only for the thread that has it locked

static void unlock(void* unused) {
  (void)unused;
  unlocked = pthread_mutex_unlock(&mutex);
}

static void wait_for_condition(bool timed) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  pthread_mutex_lock(&mutex);
  pthread_cleanup_push(unlock, NULL);
  if (timed)
    pthread_cond_timedwait(&condition, &mutex, &until);
  else
    pthread_cond_wait(&condition, &mutex);
  pthread_cleanup_pop(1);
}

static void wait_in(int function) {
  char byte = 0;
  struct iovec part = {&byte, 1};
  struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
  struct pollfd polled = {.fd = empty[0], .events = POLLIN};
  struct epoll_event event;
  fd_set set;
  FD_ZERO(&set);
  FD_SET(empty[0], &set);
  switch (function) {
    case 0:
      read(empty[0], &byte, 1);
      break;
    case 1:
      readv(empty[0], &part, 1);
      break;
    case 2:
      recv(empty[0], &byte, 1, 0);
      break;
    case 3:
      recvfrom(empty[0], &byte, 1, 0, NULL, NULL);
      break;
    case 4:
      recvmsg(empty[0], &message.msg_hdr, 0);
      break;
    case 5:
      recvmmsg(empty[0], &message, 1, 0, NULL);
      break;
    case 6:
      poll(&polled, 1, -1);
      break;
    case 7:
      select(empty[0] + 1, &set, NULL, NULL, NULL);
      break;
    case 8:
      epoll_wait(events, &event, 1, -1);
      break;
    case WRITE:
      write(full[1], &byte, 1);
      break;
    default:
      wait_for_condition(function == TIMED);
  }
}

static atomic_int waiting;  // the number of the thread that is to wait

/// Whether the kernel has it asleep.
static bool sleeps(int thread) {
  char path[64], status[512] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  FILE* const file = fopen(path, "r");
  if (file == NULL) return false;
  const char* const name_end = fgets(status, sizeof status, file) != NULL ? strrchr(status, ')') : NULL;
  fclose(file);
  return name_end != NULL && strncmp(name_end, ") S", 3) == 0;
}

static void* wait_forever(void* function) {
  waiting = gettid();
  wait_in((int)(long)function);
  return NULL;
}

static bool is_cancelled_in(int function) {
  pthread_t thread;
  void* result = NULL;
  waiting = 0;
  if (pthread_create(&thread, NULL, wait_forever, (void*)(long)function) != 0) return false;
  while (waiting == 0 || !sleeps(waiting)) sched_yield();
  return pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

int main(void) {
  char byte = 0;
  pthread_mutexattr_t checked;
  pthread_mutexattr_init(&checked);
  pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&mutex, &checked);
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, empty) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, full) != 0) return FAILED;
  while (send(full[1], &byte, 1, MSG_DONTWAIT) == 1) continue;
  struct epoll_event event = {.events = EPOLLIN};
  events = epoll_create1(0);
  if (epoll_ctl(events, EPOLL_CTL_ADD, empty[0], &event) != 0) return FAILED;
  for (int function = 0; function < HOW_MANY; ++function) {
    unlocked = 0;
    if (!is_cancelled_in(function) || unlocked != 0 || pthread_mutex_trylock(&mutex) != 0) return function + 1;
    pthread_mutex_unlock(&mutex);
  }
  return write(empty[1], &byte, 1) == 1 && read(empty[0], &byte, 1) == 1 ? 0 : FAILED;
}
