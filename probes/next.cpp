// SPDX-License-Identifier: Apache-2.0
#include "next.hpp"

#include <cstdio>
#include <cstdlib>

namespace lagometer::probes {
namespace {

void* present(void* function, const char* name) noexcept {
  if (function != nullptr) return function;
  std::fprintf(stderr, "lagometer's probe: the library that has %s is not to be found\n", name);
  std::abort();
}

}  // namespace

void* function_of(void* caller, const char* name) noexcept {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  Dl_info info{};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  void* const library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* const found = dlsym(library, name);  // in it, or in a library that it was linked with
  dlclose(library);
  return found;
}

void* NextOfProcess::get(void* caller) noexcept {
  void* found = found_.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = function_of(caller, name_);
    found_.store(found, std::memory_order_release);
  }
  return found;
}

void* NextOfProcess::need(void* caller) noexcept { return present(get(caller), name_); }

void* NextOfCaller::get(void* caller) noexcept {
  for (Known& known : known_) {
    void* const by = known.caller.load(std::memory_order_acquire);
    if (by == caller) {
      if (void* const function = known.function.load(std::memory_order_acquire)) return function;
      break;
    }
    if (by == nullptr) break;
  }
  void* const found = present(function_of(caller, name_), name_);
  for (Known& known : known_) {
    void* free = nullptr;
    if (known.caller.compare_exchange_strong(free, caller, std::memory_order_acq_rel) || free == caller) {
      known.function.store(found, std::memory_order_release);
      break;
    }
  }
  return found;
}

}  // namespace lagometer::probes
