/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded behind the probe, it makes one layer of every message longer by LAGOMETER_TEST_DELAY_NS, in every other
 * tenth of a second (the odd ones of CLOCK_MONOTONIC), so that a trial holds its own comparison. LAGOMETER_TEST_LAYER
 * says which:
 *   send_path         within the middleware's call that writes
 *   transport         within the system call that sends
 *   receive           within the system call that receives without waiting
 *   receiving_thread  when the thread that received a message first locks a mutex
 *   wake              within the call that notifies the condition on which the node's thread waits
 *   notify            when the node's thread, woken, first unlocks a mutex
 *   take              within the middleware's call that takes
 * A message is known by the envelope in its bytes. Nothing that ships loads this. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HALF_NS 100000000LL

static long long now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static int is_layer(const char* name) {
  static const char* layer = NULL;
  if (layer == NULL) {
    const char* const given = getenv("LAGOMETER_TEST_LAYER");
    layer = given != NULL ? given : "";
  }
  return strcmp(layer, name) == 0;
}

static void spend(void) {
  static long long delay_ns = -1;
  if (delay_ns < 0) {
    const char* const given = getenv("LAGOMETER_TEST_DELAY_NS");
    delay_ns = given != NULL ? atoll(given) : 0;
  }
  const long long begin_ns = now_ns();
  if (begin_ns / HALF_NS % 2 == 0) return;
  while (now_ns() - begin_ns < delay_ns) continue;
}

static void spend_in(const char* layer) {
  if (is_layer(layer)) spend();
}

/* What this thread does next that is waited for; 0: nothing. */
static __thread int received, woken;

static int is_nodes_thread(void) {
  static __thread int known; /* 0: not asked yet, 1: no, 2: yes */
  if (known == 0) {
    char name[16] = {0};
    prctl(PR_GET_NAME, name);
    known = strncmp(name, "node:", 5) == 0 ? 2 : 1;
  }
  return known == 2;
}

static int has_envelope(const struct iovec* parts, size_t count, size_t bytes) {
  static const unsigned char head[] = {0x67, 0x4C, 1, 0};
  for (size_t index = 0; index < count && bytes > 0; ++index) {
    size_t size = parts[index].iov_len < bytes ? parts[index].iov_len : bytes;
    bytes -= size;
    if (size > 400) size = 400;
    if (size > 0 && memmem(parts[index].iov_base, size, head, sizeof head) != NULL) return 1;
  }
  return 0;
}

#define NEXT(name, version)                                                      \
  static __typeof__(&name) next = NULL;                                          \
  if (next == NULL) {                                                            \
    *(void**)&next = version[0] != 0 ? dlvsym(RTLD_NEXT, #name, version) : NULL; \
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, #name);                  \
  }

ssize_t send(int socket, const void* data, size_t size, int flags) {
  NEXT(send, "")
  const struct iovec part = {(void*)data, size};
  if (has_envelope(&part, 1, size)) spend_in("transport");
  return next(socket, data, size, flags);
}

ssize_t sendto(int socket, const void* data, size_t size, int flags, const struct sockaddr* to, socklen_t to_size) {
  NEXT(sendto, "")
  const struct iovec part = {(void*)data, size};
  if (has_envelope(&part, 1, size)) spend_in("transport");
  return next(socket, data, size, flags, to, to_size);
}

ssize_t sendmsg(int socket, const struct msghdr* message, int flags) {
  NEXT(sendmsg, "")
  if (has_envelope(message->msg_iov, message->msg_iovlen, SIZE_MAX)) spend_in("transport");
  return next(socket, message, flags);
}

int sendmmsg(int socket, struct mmsghdr* messages, unsigned count, int flags) {
  NEXT(sendmmsg, "")
  int any = 0;
  for (unsigned index = 0; index < count; ++index)
    any |= has_envelope(messages[index].msg_hdr.msg_iov, messages[index].msg_hdr.msg_iovlen, SIZE_MAX);
  if (any) spend_in("transport");
  return next(socket, messages, count, flags);
}

/* Of sockets, some middleware uses these. Records are written through memory, never by a call. */
ssize_t write(int file, const void* data, size_t size) {
  NEXT(write, "")
  const struct iovec part = {(void*)data, size};
  if (has_envelope(&part, 1, size)) spend_in("transport");
  return next(file, data, size);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
  NEXT(writev, "")
  if (has_envelope(parts, (size_t)count, SIZE_MAX)) spend_in("transport");
  return next(file, parts, count);
}

ssize_t recv(int socket, void* data, size_t size, int flags) {
  NEXT(recv, "")
  const ssize_t moved = next(socket, data, size, flags);
  const struct iovec part = {data, size};
  if (moved > 0 && has_envelope(&part, 1, (size_t)moved)) {
    received = 1;
    if ((flags & MSG_DONTWAIT) != 0) spend_in("receive");
  }
  return moved;
}

ssize_t recvfrom(int socket, void* data, size_t size, int flags, struct sockaddr* from, socklen_t* from_size) {
  NEXT(recvfrom, "")
  const ssize_t moved = next(socket, data, size, flags, from, from_size);
  const struct iovec part = {data, size};
  if (moved > 0 && (flags & MSG_PEEK) == 0 && has_envelope(&part, 1, (size_t)moved)) received = 1;
  return moved;
}

ssize_t recvmsg(int socket, struct msghdr* message, int flags) {
  NEXT(recvmsg, "")
  const ssize_t moved = next(socket, message, flags);
  if (moved > 0 && (flags & MSG_PEEK) == 0 && has_envelope(message->msg_iov, message->msg_iovlen, (size_t)moved))
    received = 1;
  return moved;
}

ssize_t read(int file, void* data, size_t size) {
  NEXT(read, "")
  const ssize_t moved = next(file, data, size);
  const struct iovec part = {data, size};
  if (moved > 0 && has_envelope(&part, 1, (size_t)moved)) received = 1;
  return moved;
}

ssize_t readv(int file, const struct iovec* parts, int count) {
  NEXT(readv, "")
  const ssize_t moved = next(file, parts, count);
  if (moved > 0 && has_envelope(parts, (size_t)count, (size_t)moved)) received = 1;
  return moved;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  NEXT(pthread_mutex_lock, "")
  if (received == 1) {
    received = 2;
    spend_in("receiving_thread");
  }
  return next(mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  NEXT(pthread_mutex_unlock, "")
  const int result = next(mutex);
  if (woken != 0) {
    woken = 0;
    spend_in("notify");
  }
  return result;
}

static pthread_cond_t* waited_for = NULL; /* by the node's thread */

static void before_notifying(pthread_cond_t* condition) {
  if (received != 0 && condition == __atomic_load_n(&waited_for, __ATOMIC_RELAXED)) {
    received = 0;
    spend_in("wake");
  }
}

static void before_waiting(pthread_cond_t* condition) {
  if (is_nodes_thread()) __atomic_store_n(&waited_for, condition, __ATOMIC_RELAXED);
}

int pthread_cond_signal(pthread_cond_t* condition) {
  NEXT(pthread_cond_signal, "GLIBC_2.3.2")
  before_notifying(condition);
  return next(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) {
  NEXT(pthread_cond_broadcast, "GLIBC_2.3.2")
  before_notifying(condition);
  return next(condition);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  NEXT(pthread_cond_wait, "GLIBC_2.3.2")
  before_waiting(condition);
  const int result = next(condition, mutex);
  woken = is_nodes_thread();
  return result;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const struct timespec* until) {
  NEXT(pthread_cond_timedwait, "GLIBC_2.3.2")
  before_waiting(condition);
  const int result = next(condition, mutex, until);
  woken = is_nodes_thread();
  return result;
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  NEXT(pthread_cond_clockwait, "")
  before_waiting(condition);
  const int result = next(condition, mutex, clock, until);
  woken = is_nodes_thread();
  return result;
}

/* --- the middleware's own calls: its library was opened by an adapter, for itself alone --- */

struct wanted {
  const char* library;
  const char* name;
  void* found;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* given) {
  (void)size;
  struct wanted* const wanted = given;
  if (info->dlpi_name == NULL || strstr(info->dlpi_name, wanted->library) == NULL) return 0;
  void* const library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == NULL) return 0;
  wanted->found = dlsym(library, wanted->name);
  dlclose(library);
  return wanted->found != NULL;
}

static void* of_library(const char* library, const char* name) {
  struct wanted wanted = {library, name, NULL};
  dl_iterate_phdr(look_into, &wanted);
  if (wanted.found == NULL) abort();
  return wanted.found;
}

#define CYCLONE(name)                   \
  static __typeof__(&name) next = NULL; \
  if (next == NULL) *(void**)&next = of_library("/libddsc.so", #name);
#define FAST(function, symbol)              \
  static __typeof__(&function) next = NULL; \
  if (next == NULL) *(void**)&next = of_library("/libfastrtps.so", symbol);

int32_t dds_write_ts(int32_t writer, const void* data, int64_t time) {
  CYCLONE(dds_write_ts)
  spend_in("send_path");
  return next(writer, data, time);
}

int32_t dds_take(int32_t reader, void** data, void* infos, size_t size, uint32_t most) {
  CYCLONE(dds_take)
  spend_in("take");
  return next(reader, data, infos, size, most);
}

#define DDS "_ZN8eprosima7fastdds3dds"
#define WRITE DDS "10DataWriter5writeEPvRNS_8fastrtps4rtps11WriteParamsE"
#define TAKE                                                                                  \
  DDS "10DataReader4takeERNS1_18LoanableCollectionERNS1_16LoanableSequenceINS1_10SampleInfoE" \
      "St17integral_constantIbLb1EEEEittt"

_Bool fast_write(void* writer, void* data, void* given) __asm__(WRITE);
uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t samples, uint16_t views,
                   uint16_t instances) __asm__(TAKE);

_Bool fast_write(void* writer, void* data, void* given) {
  FAST(fast_write, WRITE)
  spend_in("send_path");
  return next(writer, data, given);
}

uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t samples, uint16_t views,
                   uint16_t instances) {
  FAST(fast_take, TAKE)
  spend_in("take");
  return next(reader, data, infos, most, samples, views, instances);
}
