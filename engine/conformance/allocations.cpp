// SPDX-License-Identifier: Apache-2.0
#include "allocations.hpp"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>

#ifndef LAGOMETER_SANITIZED
// NOLINTBEGIN(bugprone-reserved-identifier): the C library's own names for the functions that are replaced here
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace lagometer::conformance {

namespace {

std::atomic<uintptr_t> text_begin{0};
std::atomic<uintptr_t> text_end{0};
std::atomic<bool> counting{false};
std::atomic<uint64_t> counted{0};

#ifndef LAGOMETER_SANITIZED
inline void note(const void* caller) noexcept {
  if (!counting.load(std::memory_order_relaxed)) return;
  const auto address = reinterpret_cast<uintptr_t>(caller);
  if (address >= text_begin.load(std::memory_order_relaxed) && address < text_end.load(std::memory_order_relaxed))
    counted.fetch_add(1, std::memory_order_relaxed);
}
#endif

struct Wanted {
  std::string library;
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

int look_at(dl_phdr_info* info, size_t, void* user) {
  auto& wanted = *static_cast<Wanted*>(user);
  if (wanted.library != info->dlpi_name) return 0;
  for (int index = 0; index < info->dlpi_phnum; ++index) {
    const ElfW(Phdr) & header = info->dlpi_phdr[index];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    wanted.begin = info->dlpi_addr + header.p_vaddr;
    wanted.end = wanted.begin + header.p_memsz;
  }
  return 1;
}

}  // namespace

bool allocations_can_be_counted() noexcept {
#ifdef LAGOMETER_SANITIZED
  return false;
#else
  return true;
#endif
}

void count_allocations_of(const std::string& library) {
  Wanted wanted{.library = library};
  dl_iterate_phdr(look_at, &wanted);
  if (wanted.begin == wanted.end) throw std::runtime_error(library + " has no text in memory");
  text_begin.store(wanted.begin);
  text_end.store(wanted.end);
  counted.store(0);
  counting.store(true);
}

uint64_t allocations_counted() noexcept {
  counting.store(false);
  return counted.load();
}

}  // namespace lagometer::conformance

#ifndef LAGOMETER_SANITIZED
#define LAGOMETER_VISIBLE __attribute__((visibility("default")))
using lagometer::conformance::note;

extern "C" {
LAGOMETER_VISIBLE void* malloc(size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_malloc(bytes);
}
LAGOMETER_VISIBLE void* calloc(size_t count, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_calloc(count, bytes);
}
LAGOMETER_VISIBLE void* realloc(void* old, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_realloc(old, bytes);
}
LAGOMETER_VISIBLE void* aligned_alloc(size_t alignment, size_t bytes) {
  note(__builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
// Rust's allocator, for what is aligned to more than 16 bytes.
LAGOMETER_VISIBLE int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  note(__builtin_return_address(0));
  void* const memory = __libc_memalign(alignment, bytes);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
}

// Not through malloc: the caller would then be this function, and not the one that asked for memory.
LAGOMETER_VISIBLE void* operator new(size_t bytes) {
  note(__builtin_return_address(0));
  void* const memory = __libc_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
LAGOMETER_VISIBLE void* operator new[](size_t bytes) {
  note(__builtin_return_address(0));
  void* const memory = __libc_malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
LAGOMETER_VISIBLE void operator delete(void* memory) noexcept { std::free(memory); }
LAGOMETER_VISIBLE void operator delete[](void* memory) noexcept { std::free(memory); }
LAGOMETER_VISIBLE void operator delete(void* memory, size_t) noexcept { std::free(memory); }
LAGOMETER_VISIBLE void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
#endif
