// SPDX-License-Identifier: Apache-2.0
// An adapter opened without the engine, for programs of a few dozen lines: the host that it needs, and what ends the
// program with a sentence.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "lagometer/adapter.h"

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

inline lagometer_string text(std::string_view value) { return {value.data(), value.size()}; }

inline lagometer_host make_host() {
  lagometer_host host{};
  host.size = sizeof host;
  host.abi_version = LAGOMETER_ABI_VERSION;
  host.log = [](void*, uint32_t, lagometer_string) noexcept {};
  host.now_ns = [](void*) noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  };
  host.stamp = [](void*, void*, uint32_t, uint64_t, int64_t) noexcept {};
  host.thread_begin = [](void*, uint32_t, lagometer_string) noexcept {};
  host.thread_end = [](void*) noexcept {};
  host.fail = [](void*, lagometer_string reason) noexcept {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(reason.size), reason.data);
  };
  return host;
}

inline void check(lagometer_status status, const char* call) {
  if (status < 0) give_up(std::string(call) + " failed with " + std::to_string(status));
}

template <typename Config>
Config make() {
  Config config{};
  config.size = sizeof config;
  config.abi_version = LAGOMETER_ABI_VERSION;
  return config;
}

/// The table of the adapter in this library; `host` must outlive it.
inline const lagometer_adapter_table& open_adapter(const char* library, const lagometer_host& host) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) give_up(dlerror());
  const auto entry = reinterpret_cast<decltype(&lagometer_adapter)>(dlsym(handle, "lagometer_adapter"));
  if (entry == nullptr) give_up(dlerror());
  return *entry(&host);
}
