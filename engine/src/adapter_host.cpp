// SPDX-License-Identifier: Apache-2.0
#include "adapter_host.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "clock.hpp"
#include "endpoint_user.hpp"
#include "guard.hpp"
#include "loading.hpp"

namespace lagometer::engine {

namespace {

thread_local int call_depth = 0;
thread_local std::string thread_failure;

std::mutex broken_mutex;
std::string broken;

std::string text_of(lagometer_string text) {
  return text.data == nullptr ? std::string() : std::string(text.data, text.size);
}

void host_log(void*, uint32_t level, lagometer_string message) noexcept {
  const Lent lent;
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  std::fprintf(stderr, "%s: %.*s\n", kNames[std::min<uint32_t>(level, 3)], static_cast<int>(message.size),
               message.data);
}

int64_t host_now(void*) noexcept { return now_ns(); }

void host_stamp_keyed(void*, void* endpoint_user, const lagometer_stamp_key* key, uint32_t layer, int64_t time_ns,
                      uint32_t cpu) noexcept {
  if (endpoint_user == nullptr || key == nullptr) return;
  static_cast<const EndpointUser*>(endpoint_user)->stamp(*key, layer, time_ns, cpu);
}

void host_stamp(void* self, void* endpoint_user, uint32_t layer, uint64_t sequence, int64_t time_ns) noexcept {
  const lagometer_stamp_key key{.writer_id = 0, .middleware_sequence = sequence, .source_time_ns = 0};
  host_stamp_keyed(self, endpoint_user, &key, layer, time_ns, LAGOMETER_CPU_UNKNOWN);
}

void host_thread_begin(void*, uint32_t, lagometer_string name) noexcept {
  char shortened[16] = {};
  std::copy_n(name.data, std::min<uint64_t>(name.size, 15), shortened);
  pthread_setname_np(pthread_self(), shortened);
}

void host_thread_end(void*) noexcept {}

void host_fail(void*, lagometer_string message) noexcept {
  const Lent lent;
  if (call_depth > 0) {
    thread_failure = text_of(message);
    return;
  }
  const std::lock_guard lock(broken_mutex);
  if (broken.empty()) broken = text_of(message);
}

const lagometer_host kHost = {.size = sizeof(lagometer_host),
                              .abi_version = LAGOMETER_ABI_VERSION,
                              .self = nullptr,
                              .log = host_log,
                              .now_ns = host_now,
                              .stamp = host_stamp,
                              .thread_begin = host_thread_begin,
                              .thread_end = host_thread_end,
                              .fail = host_fail,
                              .stamp_keyed = host_stamp_keyed};

void append(void* user, lagometer_string text) { static_cast<std::string*>(user)->append(text.data, text.size); }

}  // namespace

InCall::InCall() noexcept { ++call_depth; }
InCall::~InCall() { --call_depth; }

Adapter::Adapter(const std::string& library) {
  const InCall in_call;
  try {
    table_ = std::make_shared<const lagometer_adapter_table>(abi_host::load(library, kHost).table);
    if (const char* const missing = abi_host::missing_function(*table_); missing != nullptr)
      throw AdapterMissing(library + ": its table lacks the function " + missing + ", which is required");
  } catch (const abi_host::Unloadable& problem) {
    throw AdapterMissing(problem.what());
  }
}

std::string Adapter::name() const { return text_of(table_->name); }

std::string Adapter::probe(std::string_view options) const {
  std::string result;
  check("probe", [&] { return table_->probe(to_c(options), append, &result); });
  return result;
}

std::string Adapter::describe(uint32_t kind, const void* object) const {
  std::string result;
  check("describe", [&] { return table_->describe(kind, object, append, &result); });
  return result;
}

void check(const char* what, const std::function<lagometer_status()>& call) {
  const InCall in_call;
  thread_failure.clear();
  const lagometer_status status = call();
  if (status >= 0) return;
  throw AdapterError(std::string(what) + " failed (status " + std::to_string(status) +
                     "): " + (thread_failure.empty() ? "the adapter gave no reason" : thread_failure));
}

std::string asynchronous_failure() {
  const std::lock_guard lock(broken_mutex);
  return broken;
}

std::string last_failure() { return thread_failure; }

}  // namespace lagometer::engine
