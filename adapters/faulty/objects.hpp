// SPDX-License-Identifier: Apache-2.0
// Each object of the inner adapter, with what is needed to forward calls.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

#include "faults.hpp"
#include "inner.hpp"

namespace lagometer::faulty {

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  ~Context() { table_.context_destroy(inner_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void enable() { check_inner(table_.context_enable(inner_)); }
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return table_; }
  [[nodiscard]] const Faults& faults() const noexcept { return faults_; }
  [[nodiscard]] lagometer_context* inner() const noexcept { return inner_; }

 private:
  Faults faults_;
  const lagometer_adapter_table& table_;
  lagometer_context* inner_ = nullptr;
};

class Node {
 public:
  Node(Context& given, std::string_view name) : context(given) {
    check_inner(context.table().node_create(context.inner(), to_c(name), &inner_));
  }
  ~Node() { context.table().node_destroy(inner_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  [[nodiscard]] lagometer_node* inner() const noexcept { return inner_; }

  Context& context;

 private:
  lagometer_node* inner_ = nullptr;
};

class Type {
 public:
  static constexpr bool kTakesKeys = true;  // if the inner adapter has them
  Type(Context& context, const lagometer_type_config& config) : max_bytes(config.max_bytes), table_(context.table()) {
    // Its faults read the envelope, and only know it as bytes.
    if (const std::string_view name = view(config.name); name != "bytes" && name != "fixed")
      throw Error(LAGOMETER_UNSUPPORTED, "faulty: no type '" + std::string(name) + "'; valid: bytes, fixed");
    check_inner(table_.type_create(context.inner(), &config, &inner_));
  }
  ~Type() { table_.type_destroy(inner_); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  [[nodiscard]] lagometer_type* inner() const noexcept { return inner_; }

  uint64_t max_bytes;

 private:
  const lagometer_adapter_table& table_;
  lagometer_type* inner_ = nullptr;
};

/// The engine's configuration of an endpoint, with the inner adapter's type in it.
inline lagometer_endpoint_config unwrapped(const lagometer_endpoint_config& config) {
  lagometer_endpoint_config result = config;
  result.type = reinterpret_cast<Type*>(config.type)->inner();
  return result;
}

/// Receiving is unchanged: the inner adapter itself calls the engine's functions.
class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config)
      : table_(node.context.table()), faults_(node.context.faults()) {
    const lagometer_endpoint_config inner_config = unwrapped(config);
    check_inner(table_.reader_create(node.inner(), &inner_config, &inner_));
  }
  ~Reader() { table_.reader_destroy(inner_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void enable() { check_inner(table_.reader_enable(inner_)); }
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
    return table_.take(inner_, samples, stride, max, &taken);
  }
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) {
    table_.release(inner_, samples, stride, count);
  }
  void matched(lagometer_matched& out) const { check_inner(table_.reader_matched(inner_, &out)); }
  void counters(lagometer_counters& out) const { check_inner(table_.reader_counters(inner_, &out)); }
  [[nodiscard]] lagometer_reader* inner() const noexcept { return inner_; }
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return table_; }
  [[nodiscard]] const Faults& faults() const noexcept { return faults_; }

 private:
  const lagometer_adapter_table& table_;
  const Faults& faults_;
  lagometer_reader* inner_ = nullptr;
};

class Waitset {
 public:
  explicit Waitset(Context& context) : table_(context.table()) {
    if (table_.waitset_create == nullptr) {
      throw Error(LAGOMETER_UNSUPPORTED, "faulty: " + context.faults().over + " has no waitset; use another dispatch");
    }
    check_inner(table_.waitset_create(context.inner(), &inner_));
  }
  ~Waitset() { table_.waitset_destroy(inner_); }
  Waitset(const Waitset&) = delete;
  Waitset& operator=(const Waitset&) = delete;

  void attach(Reader& reader) {
    check_inner(table_.waitset_attach(inner_, reader.inner()));
    ++attached_;
  }
  lagometer_status wait(int64_t until_ns) { return table_.waitset_wait(inner_, until_ns); }
  /// If the inner adapter can't report which readers are ready, any of them may be.
  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
    if (table_.waitset_wait_ready != nullptr)
      return table_.waitset_wait_ready(inner_, until_ns, places.data(), static_cast<uint32_t>(places.size()), &count);
    count = std::min(attached_, static_cast<uint32_t>(places.size()));
    std::iota(places.begin(), places.begin() + count, 0U);
    return wait(until_ns);
  }
  void trigger() { table_.waitset_trigger(inner_); }
  [[nodiscard]] lagometer_waitset* inner() const noexcept { return inner_; }

 private:
  const lagometer_adapter_table& table_;
  lagometer_waitset* inner_ = nullptr;
  uint32_t attached_ = 0;
};

}  // namespace lagometer::faulty
