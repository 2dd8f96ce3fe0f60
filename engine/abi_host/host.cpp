// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace lagometer::abi_host {

namespace {

thread_local int call_depth = 0;
thread_local std::string reason;

std::mutex first_reason_mutex;
std::string first_reason;

void host_log(void*, uint32_t level, lagometer_string message) noexcept {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  tally().logged.fetch_add(1);
  std::fprintf(stderr, "%s: %.*s\n", kNames[std::min<uint32_t>(level, 3)], static_cast<int>(message.size),
               message.data);
}

int64_t host_now(void*) noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void host_stamp(void*, void*, uint32_t, uint64_t, int64_t) noexcept {}
void host_stamp_keyed(void*, void*, const lagometer_stamp_key*, uint32_t, int64_t, uint32_t) noexcept {}

void host_thread_begin(void*, uint32_t, lagometer_string name) noexcept {
  tally().threads_begun.fetch_add(1);
  char shortened[16] = {};
  std::copy_n(name.data, std::min<uint64_t>(name.size, 15), shortened);
  pthread_setname_np(pthread_self(), shortened);
}

void host_thread_end(void*) noexcept { tally().threads_ended.fetch_add(1); }

void host_fail(void*, lagometer_string message) noexcept {
  if (call_depth > 0) {
    reason = text_of(message);
    return;
  }
  const std::lock_guard lock(first_reason_mutex);
  if (first_reason.empty()) first_reason = text_of(message);
}

}  // namespace

Tally& tally() noexcept {
  static Tally instance;
  return instance;
}

lagometer_host make_host() noexcept {
  return {.size = sizeof(lagometer_host),
          .abi_version = LAGOMETER_ABI_VERSION,
          .self = nullptr,
          .log = host_log,
          .now_ns = host_now,
          .stamp = host_stamp,
          .thread_begin = host_thread_begin,
          .thread_end = host_thread_end,
          .fail = host_fail,
          .stamp_keyed = host_stamp_keyed};
}

InCall::InCall() noexcept { ++call_depth; }
InCall::~InCall() { --call_depth; }

void forget_reason() noexcept { reason.clear(); }
const std::string& last_reason() noexcept { return reason; }

std::string broken_reason() {
  const std::lock_guard lock(first_reason_mutex);
  return first_reason;
}

std::string text_of(lagometer_string text) {
  return text.data == nullptr ? std::string() : std::string(text.data, text.size);
}

}  // namespace lagometer::abi_host
