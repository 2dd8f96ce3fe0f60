// SPDX-License-Identifier: Apache-2.0
// Another adapter, with one line of the contract broken. LAGOMETER_BREAK names the line, LAGOMETER_BROKEN_OVER the
// library that does the rest. What is not broken is that library's own.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "binding.hpp"

namespace {

using lagometer::to_c;
using lagometer::view;
using Entry = const lagometer_adapter_table* (*)(const lagometer_host*);

const lagometer_adapter_table* inner = nullptr;
lagometer_adapter_table table{};
lagometer_host own_host{};
std::atomic<uint64_t> commits{0};

struct Listener {
  lagometer_data_function on_data = nullptr;
  void* user = nullptr;
};
std::mutex mutex;
std::map<lagometer_reader*, Listener> listeners;
Listener gone;
std::map<lagometer_writer*, void*> users;  // of writers, by which the host knows them

constexpr uint64_t kHealthy = 50;  // messages that go well before one hangs or crashes
constexpr uint64_t kKindAt = 3;    // of the envelope: 0 is data

bool is_data(const lagometer_message* message) { return message->regions[0].data[kKindAt] == 0; }

lagometer_status commit_as_ever(lagometer_writer* writer, lagometer_message* message) {
  return inner->commit(writer, message);
}

void break_loading(std::string_view what) {
  if (what == "name") table.name = to_c("somebody-else");
  if (what == "null-function") table.discard = nullptr;
  if (what == "extension")
    table.extension = [](uint32_t, void*, lagometer_string) noexcept -> const void* { return &table; };
  if (what == "destroy-null")
    table.writer_destroy = [](lagometer_writer* writer) noexcept {
      if (writer == nullptr) std::abort();
      inner->writer_destroy(writer);
    };
  if (what == "probe-twice")
    table.probe = [](lagometer_string options, lagometer_sink sink, void* user) noexcept {
      inner->probe(options, sink, user);
      return inner->probe(options, sink, user);
    };
  if (what == "describe")
    table.describe = [](uint32_t, const void*, lagometer_sink sink, void* user) noexcept -> lagometer_status {
      sink(user, to_c("as ever"));
      return LAGOMETER_OK;
    };
  if (what == "describe-key")
    table.describe = [](uint32_t, const void*, lagometer_sink sink, void* user) noexcept -> lagometer_status {
      sink(user, to_c(R"({"a":1})"));
      return LAGOMETER_OK;
    };
  if (what == "transport")
    table.describe = [](uint32_t, const void*, lagometer_sink sink, void* user) noexcept -> lagometer_status {
      sink(user, to_c(R"({"transport":{"between_processes":["shm"]}})"));
      return LAGOMETER_OK;
    };
  if (what == "settings")
    table.describe = [](uint32_t, const void*, lagometer_sink sink, void* user) noexcept -> lagometer_status {
      sink(user, to_c(R"({"settings":{},"paste":[]})"));
      return LAGOMETER_OK;
    };
}

void break_contexts(std::string_view what) {
  if (what == "unknown-option")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      lagometer_context_config other = *config;
      other.options = to_c("{}");
      return inner->context_create(&other, out);
    };
  if (what == "security")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      lagometer_context_config other = *config;
      other.security = {};
      return inner->context_create(&other, out);
    };
  if (what == "domain")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      lagometer_context_config other = *config;
      other.domain = 0;
      return inner->context_create(&other, out);
    };
  if (what == "leak")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      [[maybe_unused]] const int leaked = open("/dev/null", O_RDONLY | O_CLOEXEC);
      return inner->context_create(config, out);
    };
  if (what == "leak-thread")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      std::thread([] { pause(); }).detach();
      return inner->context_create(config, out);
    };
  if (what == "thread-end")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      std::thread([] { own_host.thread_end(own_host.self); }).join();
      return inner->context_create(config, out);
    };
  if (what == "thread")
    table.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      own_host.thread_begin(own_host.self, LAGOMETER_ROLE_OTHER, to_c("endless"));
      return inner->context_create(config, out);
    };
}

/// The same endpoint, without further policies.
struct WithoutPolicies {
  explicit WithoutPolicies(const lagometer_endpoint_config& given) : qos(*given.qos), config(given) {
    qos.present &= LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY;
    config.qos = &qos;
  }
  lagometer_qos qos;
  lagometer_endpoint_config config;
};

void accept_policies(std::string_view what) {
  if (what == "policy" || what == "policy-of-readers")
    table.reader_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                             lagometer_reader** out) noexcept {
      const WithoutPolicies other(*config);
      return inner->reader_create(node, &other.config, out);
    };
  if (what == "policy")
    table.writer_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                             lagometer_writer** out) noexcept {
      const WithoutPolicies other(*config);
      return inner->writer_create(node, &other.config, out);
    };
}

void break_endpoints(std::string_view what) {
  if (what == "hang-destroy")
    table.reader_destroy = [](lagometer_reader* reader) noexcept {
      while (reader != nullptr) pause();
    };
  if (what == "unknown-flag")
    table.writer_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                             lagometer_writer** out) noexcept {
      lagometer_endpoint_config other = *config;
      other.flags = 0;
      return inner->writer_create(node, &other, out);
    };
  if (what == "early" || what == "late")
    table.reader_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                             lagometer_reader** out) noexcept {
      const lagometer_status status = inner->reader_create(node, config, out);
      const std::lock_guard lock(mutex);
      if (status == LAGOMETER_OK) listeners[*out] = {config->on_data, config->user};
      return status;
    };
  if (what == "early")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_status status = commit_as_ever(writer, message);
      const std::lock_guard lock(mutex);
      for (const auto& [reader, listener] : listeners) {
        if (listener.on_data != nullptr) listener.on_data(listener.user);
      }
      return status;
    };
  if (what == "late") {
    table.reader_destroy = [](lagometer_reader* reader) noexcept {
      inner->reader_destroy(reader);
      const std::lock_guard lock(mutex);
      gone = listeners[reader];
      listeners.erase(reader);
    };
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_status status = commit_as_ever(writer, message);
      const std::lock_guard lock(mutex);
      if (gone.on_data != nullptr) gone.on_data(gone.user);
      gone = {};
      return status;
    };
  }
}

/// Every callback comes on a thread of this adapter's own, of which the host is told nothing.
void call_on_threads_untold(std::string_view what) {
  if (what != "thread-silent") return;
  table.reader_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                           lagometer_reader** out) noexcept {
    static std::deque<Listener> called;
    const std::lock_guard lock(mutex);
    Listener& listener = called.emplace_back(Listener{config->on_data, config->user});
    lagometer_endpoint_config other = *config;
    other.user = &listener;
    other.on_data = [](void* user) noexcept {
      const auto& real = *static_cast<Listener*>(user);
      std::thread([&real] { real.on_data(real.user); }).join();
    };
    return inner->reader_create(node, &other, out);
  };
}

void break_sending(std::string_view what) {
  if (what == "borrow")
    table.borrow = [](lagometer_writer* writer, uint64_t bytes, lagometer_message* message) noexcept {
      const lagometer_status status = inner->borrow(writer, bytes, message);
      if (status == LAGOMETER_OK && bytes == 1001) message->regions[0].size = 1000;
      return status;
    };
  if (what == "discard")
    table.discard = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      inner->commit(writer, message);
    };
  if (what == "beyond")
    table.borrow = [](lagometer_writer* writer, uint64_t bytes, lagometer_message* message) noexcept {
      const lagometer_status status = inner->borrow(writer, bytes, message);
      auto* const end = reinterpret_cast<volatile uint8_t*>(message) + message->size;
      if (status == LAGOMETER_OK && end[0] == 0xC3 && end[1] == 0xC3) end[0] = 0;  // a canary of the suite's
      return status;
    };
  if (what == "damage")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_region& region = message->regions[0];
      if (region.size > 4096) region.data[region.size - 1] ^= 1;
      return commit_as_ever(writer, message);
    };
  if (what == "drop" || what == "crash" || what == "hang")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept -> lagometer_status {
      const std::string_view wanted = std::getenv("LAGOMETER_BREAK");
      if (is_data(message) && commits.fetch_add(1) >= kHealthy) {
        if (wanted == "crash") std::abort();
        while (wanted == "hang") pause();
        inner->discard(writer, message);
        return LAGOMETER_OK;
      }
      return commit_as_ever(writer, message);
    };
  if (what == "allocation")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      void* volatile memory = std::malloc(64);
      std::free(memory);
      return commit_as_ever(writer, message);
    };
  if (what == "log")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      own_host.log(own_host.self, LAGOMETER_LOG_INFO, to_c("sending"));
      return commit_as_ever(writer, message);
    };
  if (what == "print")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      std::printf("{\"event\":\"failed\"} {{{ no line end");
      std::fflush(stdout);
      return commit_as_ever(writer, message);
    };
}

void break_taking(std::string_view what) {
  if (what == "signalled")
    table.take = [](lagometer_reader* reader, lagometer_sample* samples, uint32_t stride, uint32_t max,
                    uint32_t* taken) noexcept {
      const lagometer_status status = inner->take(reader, samples, stride, max, taken);
      for (uint32_t i = 0; i < *taken; ++i)
        lagometer::sample_at(samples, stride, i).signalled_ns = own_host.now_ns(own_host.self);
      return status;
    };
  if (what == "stride")
    table.take = [](lagometer_reader* reader, lagometer_sample* samples, uint32_t stride, uint32_t max,
                    uint32_t* taken) noexcept {
      const lagometer_status status = inner->take(reader, samples, stride, max, taken);
      if (*taken > 0 && stride > sizeof(lagometer_sample)) std::memset(samples + 1, 0, 8);
      return status;
    };
  if (what == "counter")
    table.reader_counters = [](lagometer_reader* reader, lagometer_counters* out) noexcept {
      const lagometer_status status = inner->reader_counters(reader, out);
      out->present |= 1ULL << 40U;
      return status;
    };
  if (what == "trigger") table.waitset_trigger = [](lagometer_waitset*) noexcept {};
  if (what == "wait")
    table.waitset_wait = [](lagometer_waitset*, int64_t) noexcept -> lagometer_status { return LAGOMETER_TIMEOUT; };
}

void break_layers(std::string_view what) {
  if (what == "layer-key")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_status status = commit_as_ever(writer, message);
      if (message->key.middleware_sequence != 0)
        message->key.middleware_sequence += 1;
      else
        message->key.source_time_ns += 1;
      return status;
    };
  if (what == "layer-missing")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_status status = commit_as_ever(writer, message);
      message->stamps.count = 0;
      return status;
    };
  if (what == "layer-order")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      const lagometer_status status = commit_as_ever(writer, message);
      if (message->stamps.count > 1) std::swap(message->stamps.at[0], message->stamps.at[1]);
      return status;
    };
}

/// Nothing is broken: a thread of the adapter stamps each message, once by its key and once by its number alone.
void stamp_on_a_thread(std::string_view what) {
  if (what != "layer-thread") return;
  table.writer_create = [](lagometer_node* node, const lagometer_endpoint_config* config,
                           lagometer_writer** out) noexcept {
    const lagometer_status status = inner->writer_create(node, config, out);
    const std::lock_guard lock(mutex);
    if (status == LAGOMETER_OK) users[*out] = config->user;
    return status;
  };
  table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
    const lagometer_status status = commit_as_ever(writer, message);
    const std::lock_guard lock(mutex);
    std::thread([user = users[writer], key = message->key] {
      own_host.thread_begin(own_host.self, LAGOMETER_ROLE_SEND, to_c("stamping"));
      const int64_t now_ns = own_host.now_ns(own_host.self);
      own_host.stamp_keyed(own_host.self, user, &key, LAGOMETER_LAYER_VENDOR, now_ns, 0);
      own_host.stamp(own_host.self, user, LAGOMETER_LAYER_VENDOR + 1, key.middleware_sequence, now_ns);
      own_host.thread_end(own_host.self);
    }).join();
    return status;
  };
}

constexpr uint32_t kAskedAlone = 20;  // that the count of matched readers is asked before there is one
std::atomic<uint32_t> asked{0};

template <typename... Arguments>
lagometer_status cut(Arguments...) noexcept {
  own_host.fail(own_host.self, to_c("the cable is cut"));
  return LAGOMETER_FAILED;
}

/// One call fails, as it would without the network.
void fail_one(std::string_view what) {
  if (what == "fail-context") table.context_create = cut;
  if (what == "fail-writer") table.writer_create = cut;
  if (what == "fail-reader") table.reader_create = cut;
  if (what == "fail-enable") table.reader_enable = cut;
  if (what == "enable-late")  // other processes already send to the readers
    table.writer_enable = [](lagometer_writer* writer) noexcept {
      usleep(300'000);
      return inner->writer_enable(writer);
    };
  if (what == "fail-matched") table.writer_matched = cut;
  if (what == "fail-counters") table.writer_counters = cut;
  if (what == "fail-probe" || what == "fail-data")
    table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
      if (is_data(message) != (std::string_view(std::getenv("LAGOMETER_BREAK")) == "fail-data"))
        return commit_as_ever(writer, message);
      inner->discard(writer, message);
      return cut();
    };
}

/// Writes down when each probe was sent, and counts no reader for a while, then one.
void find_late(std::string_view what) {
  if (what != "find-late") return;
  table.writer_matched = [](lagometer_writer*, lagometer_matched* out) noexcept -> lagometer_status {
    out->count = asked.fetch_add(1) >= kAskedAlone ? 1 : 0;
    return LAGOMETER_OK;
  };
  table.commit = [](lagometer_writer* writer, lagometer_message* message) noexcept {
    static const int file =
        open(std::getenv("LAGOMETER_TEST_WITNESS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    [[maybe_unused]] const auto written = write(file, message->regions[0].data, LAGOMETER_ENVELOPE_BYTES);
    return commit_as_ever(writer, message);
  };
}

const lagometer_adapter_table* load(std::string_view what) {
  void* const library = dlopen(std::getenv("LAGOMETER_BROKEN_OVER"), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "lagometer_adapter"));
  inner = entry == nullptr ? nullptr : entry(&own_host);
  if (inner == nullptr) return nullptr;
  table = *inner;
  table.name = to_c("broken");
  break_loading(what);
  break_contexts(what);
  accept_policies(what);
  break_endpoints(what);
  break_sending(what);
  break_taking(what);
  break_layers(what);
  stamp_on_a_thread(what);
  call_on_threads_untold(what);
  fail_one(what);
  find_late(what);
  return &table;
}

}  // namespace

extern "C" const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) noexcept {
  const char* const wanted = std::getenv("LAGOMETER_BREAK");
  const std::string_view what = wanted == nullptr ? "" : wanted;
  if (given == nullptr || (given->abi_version < LAGOMETER_ABI_VERSION && what != "old-host")) return nullptr;
  if (what == "grown-host" && given->size > sizeof own_host) return nullptr;
  own_host = *given;
  own_host.size = sizeof own_host;
  own_host.abi_version = LAGOMETER_ABI_VERSION;
  if (what == "silent") own_host.fail = [](void*, lagometer_string) noexcept {};
  return inner == nullptr ? load(what) : &table;
}
