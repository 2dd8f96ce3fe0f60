// SPDX-License-Identifier: Apache-2.0
// The functions that stand in front of others, and how those are found.
#pragma once

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

// In front of a function of the same name in other libraries.
#define LAGOMETER_PROBE extern "C" __attribute__((visibility("default")))

namespace lagometer::probes {

/// A function of the C library, or of what was preloaded behind this library. Looked for once.
template <typename Function>
class Next {
 public:
  /// version: of the symbol, where the C library has several of this name; of another machine's that does not exist.
  explicit constexpr Next(const char* name, const char* version = nullptr) noexcept : name_(name), version_(version) {}

  template <typename... Arguments>
  auto operator()(Arguments... arguments) noexcept {
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

/// The function of this name in a library that the caller, an address in its code, brought along; null: there is none.
[[nodiscard]] void* function_of(void* caller, const char* name) noexcept;

/// A function of a library that its caller brought along, perhaps for itself alone (RTLD_LOCAL): two callers may mean
/// two libraries. So it is looked for once for each place that it is called from.
class NextOfCaller {
 public:
  explicit constexpr NextOfCaller(const char* name) noexcept : name_(name) {}
  /// caller: an address in the calling code. Ends the process where there is no such function, as the linker would.
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
