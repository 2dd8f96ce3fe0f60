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

/// Whom a reader calls, on a thread of the middleware; nobody: the reader is polled.
struct Listener {
  void* user = nullptr;
  void (*on_data)(void* user) = nullptr;
};

/// A node with one writer and one reader of a topic: what every such program opens. `close_reader` may come while the
/// writer still publishes.
class Endpoints {
 public:
  Endpoints(const lagometer_adapter_table& table, const std::string& folder, const char* options,
            uint64_t payload_bytes, Listener listener = {})
      : table_(table) {
    auto context = make<lagometer_context_config>();
    context.name = text("bare");
    context.profile = text("default");
    context.options = text(options);
    context.runtime_directory = text(folder);
    context.network = text("{}");
    check(table.context_create(&context, &context_), "context_create");
    check(table.context_enable(context_), "context_enable");
    check(table.node_create(context_, text("node"), &node_), "node_create");
    auto type = make<lagometer_type_config>();
    type.name = text("bytes");
    type.max_bytes = payload_bytes;
    check(table.type_create(context_, &type, &type_), "type_create");
    auto qos = make<lagometer_qos>();
    qos.present = LAGOMETER_QOS_HISTORY;
    qos.depth = 8;
    auto endpoint = make<lagometer_endpoint_config>();
    endpoint.type = type_;
    endpoint.topic = text("bare");
    endpoint.qos = &qos;
    check(table.writer_create(node_, &endpoint, &writer_), "writer_create");
    endpoint.dispatch = listener.on_data != nullptr ? LAGOMETER_DISPATCH_LISTENER : LAGOMETER_DISPATCH_POLL;
    endpoint.user = listener.user;
    endpoint.on_data = listener.on_data;
    check(table.reader_create(node_, &endpoint, &reader_), "reader_create");
    check(table.reader_enable(reader_), "reader_enable");
    check(table.writer_enable(writer_), "writer_enable");
  }
  Endpoints(const Endpoints&) = delete;
  Endpoints& operator=(const Endpoints&) = delete;
  ~Endpoints() {
    close_reader();
    table_.writer_destroy(writer_);
    table_.type_destroy(type_);
    table_.node_destroy(node_);
    table_.context_destroy(context_);
  }

  void close_reader() {
    if (reader_ != nullptr) table_.reader_destroy(reader_);
    reader_ = nullptr;
  }
  const lagometer_adapter_table& table() const { return table_; }
  lagometer_writer* writer() const { return writer_; }
  lagometer_reader* reader() const { return reader_; }

 private:
  const lagometer_adapter_table& table_;
  lagometer_context* context_ = nullptr;
  lagometer_node* node_ = nullptr;
  lagometer_type* type_ = nullptr;
  lagometer_writer* writer_ = nullptr;
  lagometer_reader* reader_ = nullptr;
};
