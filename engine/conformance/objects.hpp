// SPDX-License-Identifier: Apache-2.0
// The objects of adapter.h as C++ values, created from a check's orders. If an adapter returns a negative status, the
// call throws a Refusal with the adapter's reason.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "content.hpp"
#include "host.hpp"
#include "loading.hpp"
#include "progress.hpp"
#include "sizes.hpp"

namespace lagometer::conformance {

using abi_host::broken_reason;
using abi_host::forget_reason;
using abi_host::last_reason;
using abi_host::to_c;

/// Marks the thread as being inside a call of an adapter, so that host->fail belongs to that call; `name` is reported
/// to the waiting program, null (in a callback) is not.
class InCall {
 public:
  explicit InCall(const char* name) noexcept : mark_(name) {}

 private:
  abi_host::InCall in_call_;
  CallMark mark_;
};

/// The host that tested adapters get. Valid until the process ends.
const lagometer_host& host() noexcept;
inline int64_t now_ns() noexcept { return host().now_ns(host().self); }

/// An adapter returned a negative status.
class Refusal : public std::runtime_error {
 public:
  Refusal(std::string call, lagometer_status status, std::string reason)
      : std::runtime_error(call + " failed (status " + std::to_string(status) +
                           "): " + (reason.empty() ? "the adapter gave no reason" : reason)),
        call_(std::move(call)),
        status_(status),
        reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& call() const noexcept { return call_; }
  [[nodiscard]] lagometer_status status() const noexcept { return status_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  std::string call_;
  lagometer_status status_;
  std::string reason_;
};

/// Makes a call that returns a status; last_reason() is what it gave to host->fail.
template <typename Function>
lagometer_status attempt(const char* call, Function&& function) {
  const InCall in_call(call);
  forget_reason();
  return function();
}

/// Makes a call and returns its status if that is not negative. Throws Refusal.
template <typename Function>
lagometer_status demand(const char* call, Function&& function) {
  const lagometer_status status = attempt(call, std::forward<Function>(function));
  if (status < 0) throw Refusal(call, status, last_reason());
  return status;
}

template <typename Struct>
Struct made() noexcept {
  Struct value{};
  value.size = sizeof value;
  value.abi_version = LAGOMETER_ABI_VERSION;
  return value;
}

/// How memory lent for a call is treated. spoils: overwritten after the call; growth: this many bytes beyond what this
/// header knows follow each struct, as in a newer host; first: each struct ends where the first version's did, as in
/// the oldest host, and is followed by nonsense.
struct Manner {
  bool spoils = false;
  uint32_t growth = 0;
  bool first = false;
};

/// Called while waiting without an event to wait for: leaves the CPU to others.
void rest() noexcept;

/// Strings and structs lent to an adapter for one call.
class Lent {
 public:
  explicit Lent(Manner manner) : manner_(manner) {}
  ~Lent();
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  lagometer_string text(std::string_view value);
  template <typename Struct>
  Struct& make() {
    auto& memory = memory_.emplace_back(sizeof(Struct) + manner_.growth, uint8_t{0xEE});
    auto* value = new (memory.data()) Struct{};
    const size_t first = abi_host::size_1_0(*value);
    if (manner_.first) std::fill(memory.begin() + static_cast<ptrdiff_t>(first), memory.end(), uint8_t{0xEE});
    value->size = static_cast<uint32_t>(manner_.first ? first : memory.size());
    value->abi_version = LAGOMETER_ABI_VERSION;
    return *value;
  }

 private:
  Manner manner_;
  std::deque<std::vector<uint8_t>> memory_;
};

/// One library, open until the process ends.
class Adapter {
 public:
  /// Throws abi_host::Unloadable.
  explicit Adapter(std::string library);
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return loaded_.table; }
  [[nodiscard]] abi_host::Entry entry() const noexcept { return loaded_.entry; }
  [[nodiscard]] const std::string& library() const noexcept { return library_; }
  /// What describe() returns for an object; "" if the sink was not called. Throws Refusal.
  [[nodiscard]] std::string describe(uint32_t kind, const void* object) const;

 private:
  std::string library_;
  abi_host::Loaded loaded_;
};

struct ContextSpec {
  uint32_t domain = 0;
  std::string name = "conformance";
  std::string profile = "default";
  std::string options = "{}";
  std::string runtime_directory;
  std::string network = "{}";
  std::string security;
};

struct QosSpec {
  std::optional<bool> reliable, keep_all, transient_local;
  std::optional<uint32_t> depth;
  std::optional<int64_t> deadline_ns, lifespan_ns, lease_ns;
  bool manual = false;                   // liveliness by topic, with a lease
  std::optional<std::string> partition;  // names separated by semicolons
  int64_t blocking_ns = 1'000'000'000;
  uint64_t more_present = 0;  // bits of `present` in addition to those that follow from the above
};

struct EndpointSpec {
  std::string topic = "topic";
  std::string type = "bytes";
  uint64_t bytes = 64;
  QosSpec qos;
  uint32_t dispatch = LAGOMETER_DISPATCH_POLL;
  uint32_t flags = 0;
  uint32_t type_flags = 0;
  uint32_t instances = 0;  // for a keyed type; a message's key is its sequence modulo this number
  bool stamps = false;     // requested, all that are available
};

QosSpec parse_qos(const nlohmann::json& given);
EndpointSpec parse_endpoint(const nlohmann::json& given);
uint32_t dispatch_of(const std::string& name);

/// A context with its only node.
class Context {
 public:
  Context(const Adapter& adapter, const ContextSpec& spec, Manner manner = {});
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  [[nodiscard]] const Adapter& adapter() const noexcept { return adapter_; }
  [[nodiscard]] lagometer_context* handle() const noexcept { return handle_; }
  [[nodiscard]] lagometer_node* node() const noexcept { return node_; }

 private:
  const Adapter& adapter_;
  lagometer_context* handle_ = nullptr;
  lagometer_node* node_ = nullptr;
};

/// A type of a context.
class Type {
 public:
  Type(Context& context, const EndpointSpec& spec, Manner manner);
  ~Type();
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  [[nodiscard]] lagometer_type* handle() const noexcept { return handle_; }

 private:
  const lagometer_adapter_table& table_;
  lagometer_type* handle_ = nullptr;
};

class Writer {
 public:
  Writer(Context& context, const EndpointSpec& spec, uint32_t stream, Manner manner = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void enable();
  /// Sends one message; OK or REJECTED. Throws Refusal.
  lagometer_status send(uint64_t sequence, uint64_t bytes, MessageKind kind = MessageKind::data);
  /// Looks for readers, then sends a probe, as the engine does.
  void probe();
  [[nodiscard]] lagometer_matched matched();
  [[nodiscard]] lagometer_counters counters();
  [[nodiscard]] uint32_t stream() const noexcept { return stream_; }
  [[nodiscard]] lagometer_writer* handle() const noexcept { return handle_; }
  /// The stamps of each accepted message, see traces.hpp; then forgets them. Empty if stamps were not requested.
  [[nodiscard]] nlohmann::json traces() { return std::exchange(traces_, nlohmann::json::array()); }

 private:
  const lagometer_adapter_table& table_;
  Type type_;
  bool stamps_;
  nlohmann::json traces_ = nlohmann::json::array();
  const PayloadType& payload_;
  uint64_t probe_bytes_;
  uint32_t instances_;
  uint32_t stream_;
  uint64_t probes_ = 0;
  lagometer_writer* handle_ = nullptr;
};

/// What a reader's listener calls.
struct Called {
  void* user = nullptr;
  lagometer_data_function on_data = nullptr;
};

class Reader {
 public:
  Reader(Context& context, const EndpointSpec& spec, Called called, Manner manner = {});
  ~Reader() { destroy(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  void enable();
  void destroy() noexcept;
  /// Takes up to `max` samples and calls see(sample) for each before releasing them. Throws Refusal.
  template <typename See>
  uint32_t take(uint32_t max, See&& see) {
    lagometer_sample samples[kBatch];
    for (lagometer_sample& sample : samples) sample = made<lagometer_sample>();
    uint32_t taken = 0;
    const uint32_t most = max < kBatch ? max : kBatch;
    demand("take", [&] { return table_.take(handle_, samples, sizeof samples[0], most, &taken); });
    for (uint32_t index = 0; index < taken; ++index) see(samples[index]);
    if (taken > 0) release(samples, sizeof samples[0], taken);
    return taken;
  }
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  [[nodiscard]] lagometer_matched matched();
  [[nodiscard]] lagometer_counters counters();
  [[nodiscard]] lagometer_reader* handle() const noexcept { return handle_; }
  static constexpr uint32_t kBatch = 8;

 private:
  const lagometer_adapter_table& table_;
  Type type_;
  lagometer_reader* handle_ = nullptr;
};

class Waitset {
 public:
  explicit Waitset(Context& context);
  ~Waitset();
  Waitset(const Waitset&) = delete;
  Waitset& operator=(const Waitset&) = delete;
  void attach(const Reader& reader);
  lagometer_status wait(int64_t until_ns);
  /// Whether it reports which readers are ready; then a wait that does, with their places in `ready`.
  [[nodiscard]] bool names_ready() const noexcept { return table_.waitset_wait_ready != nullptr; }
  lagometer_status wait_ready(int64_t until_ns, std::vector<uint32_t>& ready);
  void trigger() noexcept;

 private:
  const lagometer_adapter_table& table_;
  lagometer_waitset* handle_ = nullptr;
};

}  // namespace lagometer::conformance
