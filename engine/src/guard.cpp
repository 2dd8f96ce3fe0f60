// SPDX-License-Identifier: Apache-2.0
// The guard build's own malloc, pthread_mutex_lock and write: they forward the call, unless the engine is measuring.
#include "guard.hpp"

#ifdef LAGOMETER_GUARD

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);
}

namespace lagometer::engine::guard {

thread_local constinit int forbidden = 0;

namespace {

void check(const char* what) noexcept {
  if (forbidden == 0) return;
  forbidden = 0;
  char text[160];
  const int length = snprintf(text, sizeof text, "lagometer guard: %s between warm-up and drain; aborting\n", what);
  syscall(SYS_write, STDERR_FILENO, text, static_cast<size_t>(length));
  abort();
}

using MutexLock = int (*)(pthread_mutex_t*);
MutexLock next_mutex_lock() noexcept {
  static const auto next = reinterpret_cast<MutexLock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return next;
}

const char* wanted_fault() noexcept {
  static const char* const fault = getenv("LAGOMETER_FAULT");
  return fault;
}
// Looked up before measuring begins, so that the look-up itself never aborts.
const bool kReady = (next_mutex_lock(), wanted_fault(), true);

}  // namespace

void inject_fault() {
  if (forbidden == 0) return;
  const char* fault = wanted_fault();
  if (fault == nullptr || !kReady) return;
  if (strcmp(fault, "malloc") == 0) {
    void* volatile memory = malloc(1);
    free(memory);
  } else if (strcmp(fault, "mutex") == 0) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  } else if (strcmp(fault, "write") == 0) {
    [[maybe_unused]] const auto written = write(STDERR_FILENO, "", 0);
  }
}

}  // namespace lagometer::engine::guard

using lagometer::engine::guard::check;

extern "C" {
__attribute__((visibility("default"))) void* malloc(size_t bytes) {
  check("malloc");
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(size_t count, size_t bytes) {
  check("calloc");
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* old, size_t bytes) {
  check("realloc");
  return __libc_realloc(old, bytes);
}
__attribute__((visibility("default"))) void* memalign(size_t alignment, size_t bytes) {
  check("memalign");
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(size_t alignment, size_t bytes) {
  check("aligned_alloc");
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) void free(void* memory) {
  check("free");
  __libc_free(memory);
}
__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* mutex) {
  check("pthread_mutex_lock");
  return lagometer::engine::guard::next_mutex_lock()(mutex);
}
__attribute__((visibility("default"))) ssize_t write(int descriptor, const void* bytes, size_t count) {
  check("write");
  return syscall(SYS_write, descriptor, bytes, count);
}
}

#endif
