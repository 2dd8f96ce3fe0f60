// SPDX-License-Identifier: Apache-2.0
#include "made_threads.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>

namespace lagometer::conformance {

namespace {

std::atomic<uintptr_t> watched_begin{0};  // of all that is loaded of the library, text and data
std::atomic<uintptr_t> watched_end{0};
std::atomic<uint64_t> threads_made{0};
std::atomic<uint64_t> threads_announced{0};
std::atomic<uint64_t> threads_ended_silent{0};
thread_local bool this_thread_watched = false;
thread_local bool this_thread_announced = false;

#ifndef LAGOMETER_SANITIZED
struct Watched {
  std::string library;
  uintptr_t begin = std::numeric_limits<uintptr_t>::max();
  uintptr_t end = 0;
};

int find_watched(dl_phdr_info* info, size_t, void* user) {
  auto& watched = *static_cast<Watched*>(user);
  if (watched.library != info->dlpi_name) return 0;
  for (int index = 0; index < info->dlpi_phnum; ++index) {
    const ElfW(Phdr) & header = info->dlpi_phdr[index];
    if (header.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    watched.begin = std::min(watched.begin, begin);
    watched.end = std::max(watched.end, begin + header.p_memsz);
  }
  return 1;
}

using Routine = void* (*)(void*);
using Create = int (*)(pthread_t*, const pthread_attr_t*, Routine, void*);

struct ThreadStart {
  Routine routine;
  void* argument;
};

/// Counts this thread when it ends, however it ends.
class Lifetime {
 public:
  Lifetime() noexcept { this_thread_watched = true; }
  ~Lifetime() {
    if (!this_thread_announced) threads_ended_silent.fetch_add(1);
  }
  Lifetime(const Lifetime&) = delete;
  Lifetime& operator=(const Lifetime&) = delete;
};

void* run_made(void* given) {
  const ThreadStart start = *static_cast<ThreadStart*>(given);
  delete static_cast<ThreadStart*>(given);
  const Lifetime lifetime;
  return start.routine(start.argument);
}

bool in_watched(uintptr_t address) noexcept { return address >= watched_begin.load() && address < watched_end.load(); }

/// Whether the caller of pthread_create is the library itself, or std::thread on its behalf: then what runs is an
/// object whose virtual table lies in the library.
bool made_by_watched(const void* caller, const void* argument) noexcept {
  if (watched_end.load() == 0) return false;
  if (in_watched(reinterpret_cast<uintptr_t>(caller))) return true;
  Dl_info place{};
  if (dladdr(caller, &place) == 0 || place.dli_fname == nullptr) return false;
  if (std::string_view(place.dli_fname).find("libstdc++.so") == std::string_view::npos) return false;
  uintptr_t virtual_table = 0;
  std::memcpy(&virtual_table, argument, sizeof virtual_table);
  return in_watched(virtual_table);
}

Create next_create() noexcept {
  static const auto next = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return next;
}
#endif

}  // namespace

void watch_threads_of(const std::string& library) {
#ifndef LAGOMETER_SANITIZED
  Watched watched{.library = library};
  dl_iterate_phdr(find_watched, &watched);
  watched_begin.store(watched.begin);
  watched_end.store(watched.end);
#else
  static_cast<void>(library);
#endif
}

bool threads_are_watched() noexcept { return watched_end.load() != 0; }

void note_thread_begin() noexcept {
  if (on_silent_thread()) threads_announced.fetch_add(1);
  this_thread_announced = true;
}

bool on_silent_thread() noexcept { return this_thread_watched && !this_thread_announced; }
uint64_t silent_threads() noexcept {
  const uint64_t announced_so_far = threads_announced.load();  // first: a thread is made before it is announced
  return threads_made.load() - announced_so_far;
}
uint64_t silent_threads_ended() noexcept { return threads_ended_silent.load(); }

}  // namespace lagometer::conformance

#ifndef LAGOMETER_SANITIZED
extern "C"
    __attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                              void* (*routine)(void*), void* argument) noexcept {
  using namespace lagometer::conformance;
  if (!made_by_watched(__builtin_return_address(0), argument))
    return next_create()(thread, attributes, routine, argument);
  auto* const start = new (std::nothrow) ThreadStart{.routine = routine, .argument = argument};
  if (start == nullptr) return EAGAIN;
  threads_made.fetch_add(1);
  const int status = next_create()(thread, attributes, run_made, start);
  if (status != 0) {
    threads_made.fetch_sub(1);
    delete start;
  }
  return status;
}
#endif
