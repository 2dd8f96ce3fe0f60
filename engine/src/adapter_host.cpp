// SPDX-License-Identifier: Apache-2.0
#include "adapter_host.hpp"

#include "clock.hpp"
#include "endpoint_user.hpp"
#include "guard.hpp"
#include "loading.hpp"

namespace lagometer::engine {

namespace {

const lagometer_host kCommon = abi_host::make_host();

// These two functions are not part of measuring.
void host_log(void* self, uint32_t level, lagometer_string message) noexcept {
  const Lent lent;
  kCommon.log(self, level, message);
}

void host_fail(void* self, lagometer_string message) noexcept {
  const Lent lent;
  kCommon.fail(self, message);
}

// The engine's own clock, so that this uses the same cache lines of code as every stamp.
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

const lagometer_host kHost = [] {
  lagometer_host host = kCommon;
  host.log = host_log;
  host.now_ns = host_now;
  host.fail = host_fail;
  host.stamp = host_stamp;
  host.stamp_keyed = host_stamp_keyed;
  return host;
}();

void append(void* user, lagometer_string text) { static_cast<std::string*>(user)->append(text.data, text.size); }

}  // namespace

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

std::string Adapter::name() const { return abi_host::text_of(table_->name); }

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
  abi_host::forget_reason();
  const lagometer_status status = call();
  if (status >= 0) return;
  const std::string& reason = abi_host::last_reason();
  throw AdapterError(std::string(what) + " failed (status " + std::to_string(status) +
                     "): " + (reason.empty() ? "the adapter gave no reason" : reason));
}

}  // namespace lagometer::engine
