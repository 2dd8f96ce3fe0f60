// SPDX-License-Identifier: Apache-2.0
// Functions that intercept others, and how to find those.
#pragma once

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

// Intercepts the function of the same name in other libraries.
#define LAGOMETER_PROBE extern "C" __attribute__((visibility("default")))

namespace lagometer::probes {

/// A function of the C library, or of a library preloaded after this one. Looked up once. A thread that is cancelled
/// may end in it: that unwinds the stack, and at a function that is `noexcept` it would end the whole program. So of
/// those between the program and the C library, only functions in which no thread can be cancelled are `noexcept`.
template <typename Function>
class Next {
 public:
  /// version: of the symbol, if the C library has several with this name; other architectures may not have it.
  explicit constexpr Next(const char* name, const char* version = nullptr) noexcept : name_(name), version_(version) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }
  [[nodiscard]] Function* get() noexcept {
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      if (version_ != nullptr) found = dlvsym(RTLD_NEXT, name_, version_);
      if (found == nullptr) found = dlsym(RTLD_NEXT, name_);
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<void*> found_{nullptr};
};

/// The function with this name in a library that the caller (an address in its code) brought along; null: not found.
[[nodiscard]] void* function_of(void* caller, const char* name) noexcept;

/// The same, of a library of which a process has only one: looked up once, whoever calls it.
class NextOfProcess {
 public:
  explicit constexpr NextOfProcess(const char* name) noexcept : name_(name) {}
  /// Null: the library does not have it.
  [[nodiscard]] void* get(void* caller) noexcept;
  /// Ends the process if the library does not have it, as the linker would.
  [[nodiscard]] void* need(void* caller) noexcept;

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

/// A function of a library that its caller brought along, perhaps only for itself (RTLD_LOCAL): two callers may mean
/// two libraries. So it is looked up once for each call site.
class NextOfCaller {
 public:
  explicit constexpr NextOfCaller(const char* name) noexcept : name_(name) {}
  /// caller: an address in the calling code. Ends the process if there is no such function, as the linker would.
  [[nodiscard]] void* get(void* caller) noexcept;

 private:
  struct Known {
    std::atomic<void*> caller{nullptr};
    std::atomic<void*> function{nullptr};
  };
  const char* name_;
  std::array<Known, 16> known_{};
};

}  // namespace lagometer::probes
