// SPDX-License-Identifier: Apache-2.0
// Turns six C++ classes into the table of adapter.h, so that an adapter is plain C++: methods that return a status or
// throw. Every exception ends here: it becomes host->fail(what) and LAGOMETER_FAILED (or an Error's own status).
// A Traits type names the classes and describes the adapter:
//   struct Traits {
//     using Context, Node, Type, Writer, Reader, Waitset;
//     static constexpr std::string_view name;
//     static std::string probe(std::string_view options);                     // JSON text
//     static std::string describe(uint32_t kind, const void* object);         // JSON text
//     static const void* extension(uint32_t kind, void* object, std::string_view name);
//   };
// with  Context(const lagometer_context_config&), enable()      Node(Context&, std::string_view name)
//       Type(Context&, const lagometer_type_config&)
//       Writer(Node&, const lagometer_endpoint_config&), enable(), borrow(bytes, message&), commit(message&),
//         discard(message&), matched(lagometer_matched&), counters(lagometer_counters&)
//       Reader(Node&, const lagometer_endpoint_config&), enable(), take(samples, stride, max, taken&),
//         release(samples, stride, count), matched(...), counters(...)
//       Waitset(Context&), attach(Reader&), wait(until_ns), trigger()
//         or, if it knows which readers are ready, wait_ready(until_ns, std::span<uint32_t> places, uint32_t& count),
//         instead of wait() or in addition to it
// borrow, commit, take, wait and wait_ready return lagometer_status; the other methods return void. The constructors
// refuse what the sidecar does not list: refuse_settings, check_endpoint and check_writer (refusing.hpp) do so.
//
// The host's structs may be shorter or longer than in this header. These classes always get structs of the size that
// this header knows: fields beyond the end of the host's struct are zero, and what is written to them is dropped.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lagometer/adapter.h"
#include "refusing.hpp"

namespace lagometer {

/// The size of a struct in its first version; no host passes less.
inline constexpr size_t size_1_0(const lagometer_host&) { return LAGOMETER_HOST_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_context_config&) { return LAGOMETER_CONTEXT_CONFIG_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_qos&) { return LAGOMETER_QOS_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_type_config&) { return LAGOMETER_TYPE_CONFIG_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_endpoint_config&) { return LAGOMETER_ENDPOINT_CONFIG_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_message&) { return LAGOMETER_MESSAGE_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_sample&) { return LAGOMETER_SAMPLE_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_matched&) { return LAGOMETER_MATCHED_SIZE_1_0; }
inline constexpr size_t size_1_0(const lagometer_counters&) { return LAGOMETER_COUNTERS_SIZE_1_0; }

/// A host's struct as this header knows it, with zeros where the host's is shorter. Throws Error if it is too short.
template <typename Struct>
Struct completed(const Struct& given) {
  if (given.size < size_1_0(given))
    throw Error(LAGOMETER_INVALID, "a struct of " + std::to_string(given.size) + " bytes, its first version had " +
                                       std::to_string(size_1_0(given)) + ": the host sets `size` before a call");
  Struct whole{};
  std::memcpy(static_cast<void*>(&whole), &given, std::min<size_t>(given.size, sizeof whole));
  whole.size = sizeof whole;
  return whole;
}

/// Copies what was written to the whole struct back to the host's, as far as that reaches; `size` stays the host's.
template <typename Struct>
void give_back(const Struct& whole, Struct& given) noexcept {
  constexpr size_t head = offsetof(Struct, abi_version) + sizeof given.abi_version;
  const size_t end = std::min<size_t>(given.size, sizeof whole);
  std::memcpy(reinterpret_cast<char*>(&given) + head, reinterpret_cast<const char*>(&whole) + head, end - head);
}

/// Calls function(struct) with the host's own struct or, if that is shorter than this header's, with a whole one.
template <typename Struct, typename Function>
auto with_whole(Struct& given, Function&& function) {
  if (__builtin_expect(given.size >= sizeof given, 1)) return function(given);
  Struct whole = completed(given);
  const lagometer_status status = function(whole);
  give_back(whole, given);
  return status;
}

/// The host that loaded this library; functions that it does not have are null. Set by the entry function.
inline const lagometer_host* host = nullptr;

inline int64_t now_ns() noexcept { return host->now_ns(host->self); }
inline void log(uint32_t level, std::string_view text) noexcept { host->log(host->self, level, to_c(text)); }

/// A time of the host's clock for the standard library, whose steady_clock is also CLOCK_MONOTONIC. "Never" would
/// overflow there, so it is clamped.
inline std::chrono::steady_clock::time_point deadline(int64_t until_ns) noexcept {
  constexpr int64_t kLatest_ns = int64_t{1} << 62;
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns < kLatest_ns ? until_ns : kLatest_ns));
}

/// Element `index` of an array whose elements are `stride` bytes apart.
inline lagometer_sample& sample_at(lagometer_sample* samples, uint32_t stride, uint32_t index) noexcept {
  return *reinterpret_cast<lagometer_sample*>(reinterpret_cast<char*>(samples) + size_t{stride} * index);
}

/// Keeps the host. Returns false if the adapter can't work with it.
inline bool serves(const lagometer_host* given) noexcept {
  static lagometer_host whole;
  if (given == nullptr || given->abi_version < LAGOMETER_ABI_VERSION || given->size < LAGOMETER_HOST_SIZE_1_0)
    return false;
  host = given;
  if (given->size < sizeof whole) {
    whole = completed(*given);
    host = &whole;
  }
  return true;
}

template <typename Function>
lagometer_status guarded(Function&& function) noexcept {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    host->fail(host->self, to_c(error.what()));
    return error.status();
  } catch (const std::bad_alloc&) {
    host->fail(host->self, to_c("out of memory"));
    return LAGOMETER_NO_RESOURCE;
  } catch (const std::exception& error) {
    host->fail(host->self, to_c(error.what()));
    return LAGOMETER_FAILED;
  } catch (...) {
    host->fail(host->self, to_c("an exception of unknown type"));
    return LAGOMETER_FAILED;
  }
}

/// An endpoint's configuration as this header knows it, checked; it points into itself. Throws Error.
struct WholeEndpoint {
  explicit WholeEndpoint(const lagometer_endpoint_config& given) : config(completed(given)) {
    if (config.qos != nullptr) {
      qos = completed(*config.qos);
      config.qos = &qos;
    }
    refuse_unknown(config);
  }
  WholeEndpoint(const WholeEndpoint&) = delete;
  WholeEndpoint& operator=(const WholeEndpoint&) = delete;

  lagometer_endpoint_config config;
  lagometer_qos qos{};
};

/// Base for objects that have nothing to start, count or report. Adapters override what they can do better.
struct Plain {
  void enable() {}
  void discard(lagometer_message&) {}
  void matched(lagometer_matched& out) const { out.exact = 2; }
  void counters(lagometer_counters& out) const { out.present = 0; }
};

/// A node that is just a name, and a type that is just a size: "bytes" up to it, "fixed" exactly that.
template <typename Context>
struct PlainNode {
  PlainNode(Context& given, std::string_view) : context(given) {}
  Context& context;
};

/// A payload type: "bytes" accepts any length up to bytes_max, "fixed" only bytes_max.
struct PayloadType {
  /// `whose` starts the text of an error, e.g. "udp: "; `most` is the largest payload that the adapter supports.
  explicit PayloadType(const lagometer_type_config& config, const std::string& whose = {}, uint64_t most = UINT64_MAX)
      : name(view(config.name)), bytes_max(config.max_bytes), fixed(name == "fixed") {
    if (!fixed && name != "bytes")
      throw Error(LAGOMETER_UNSUPPORTED, whose + "no type '" + name + "'; valid: bytes, fixed");
    if (bytes_max < LAGOMETER_PAYLOAD_BYTES_MIN || bytes_max > most)
      throw Error(LAGOMETER_INVALID, whose + "a payload has " + std::to_string(LAGOMETER_PAYLOAD_BYTES_MIN) + " to " +
                                         std::to_string(most) + " bytes, not " + std::to_string(bytes_max));
  }
  [[nodiscard]] bool accepts(uint64_t bytes) const noexcept { return fixed ? bytes == bytes_max : bytes <= bytes_max; }
  void check(uint64_t bytes) const {
    if (accepts(bytes)) return;
    throw Error(LAGOMETER_INVALID, "a message of " + std::to_string(bytes) + " bytes does not fit type '" + name +
                                       "' of " + std::to_string(bytes_max) + " bytes");
  }

  std::string name;
  uint64_t bytes_max;
  bool fixed;
};

/// The same for an adapter without a limit.
template <typename Context>
struct PlainType : PayloadType {
  PlainType(Context&, const lagometer_type_config& config) : PayloadType(config) {}
};

#if __cplusplus >= 202002L
/// For wait_ready: writes the places of the readers with data, in attach order, as many as fit; returns how many.
template <typename Readers, typename HasData>
uint32_t name_ready(const Readers& readers, std::span<uint32_t> places, HasData&& has_data) {
  uint32_t count = 0;
  uint32_t place = 0;
  for (const auto& reader : readers) {
    if (count == places.size()) break;
    if (has_data(reader)) places[count++] = place;
    ++place;
  }
  return count;
}
#endif

/// Base for Traits without settings or extensions.
struct PlainTraits {
  static std::string describe(uint32_t, const void*) { return R"({"settings":{},"paste":[]})"; }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

/// The classes of an adapter, for its Traits to derive from.
template <typename ContextClass, typename NodeClass, typename TypeClass, typename WriterClass, typename ReaderClass,
          typename WaitsetClass>
struct Parts {
  using Context = ContextClass;
  using Node = NodeClass;
  using Type = TypeClass;
  using Writer = WriterClass;
  using Reader = ReaderClass;
  using Waitset = WaitsetClass;
};

template <typename Traits>
struct Binding {
  using Context = typename Traits::Context;
  using Node = typename Traits::Node;
  using Type = typename Traits::Type;
  using Writer = typename Traits::Writer;
  using Reader = typename Traits::Reader;
  using Waitset = typename Traits::Waitset;

  template <typename Class, typename Handle>
  static Class& object(Handle* handle) noexcept {
    return *reinterpret_cast<Class*>(handle);
  }
  template <typename Class, typename Handle, typename... Arguments>
  static lagometer_status create(Handle** out, Arguments&&... arguments) noexcept {
    return guarded([&] {
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): guarded() catches it
      *out = reinterpret_cast<Handle*>(new Class(std::forward<Arguments>(arguments)...));
      return LAGOMETER_OK;
    });
  }
  /// The same for objects that have flags: rejects flags that this header does not know.
  template <typename Class, typename Parent, typename Config, typename Handle>
  static lagometer_status create_checked(Handle** out, Parent* parent, const Config* config) noexcept {
    return guarded([&] { return create_from<Class>(out, parent, *config); });
  }
  template <typename Class, typename Parent, typename Handle>
  static lagometer_status create_from(Handle** out, Parent* parent, const lagometer_type_config& given) {
    const lagometer_type_config config = completed(given);
    refuse_unknown<Class>(config);
    return create<Class>(out, *parent, config);
  }
  template <typename Class, typename Parent, typename Handle>
  static lagometer_status create_from(Handle** out, Parent* parent, const lagometer_endpoint_config& given) {
    const WholeEndpoint whole(given);
    return create<Class>(out, *parent, whole.config);
  }
  template <typename Class, typename Handle>
  static void destroy(Handle* handle) noexcept {
    delete reinterpret_cast<Class*>(handle);
  }
  template <typename Function>
  static lagometer_status done(Function&& function) noexcept {
    return guarded([&] {
      std::forward<Function>(function)();
      return LAGOMETER_OK;
    });
  }

  static const lagometer_adapter_table* table() noexcept {
    static const lagometer_adapter_table instance = make();
    return &instance;
  }

 private:
  static lagometer_adapter_table make() noexcept {
    lagometer_adapter_table t{};
    t.size = sizeof t;
    t.abi_version = LAGOMETER_ABI_VERSION;
    t.name = to_c(Traits::name);
    lifecycle(t);
    traffic(t);
    waiting(t);
    t.probe = [](lagometer_string options, lagometer_sink sink, void* user) noexcept {
      return done([&] {
        const std::string text = Traits::probe(view(options));
        sink(user, to_c(text));
      });
    };
    t.describe = [](uint32_t kind, const void* handle, lagometer_sink sink, void* user) noexcept {
      return done([&] {
        const std::string text = Traits::describe(kind, handle);
        sink(user, to_c(text));
      });
    };
    t.extension = [](uint32_t kind, void* handle, lagometer_string name) noexcept {
      return Traits::extension(kind, handle, view(name));
    };
    return t;
  }

  static void lifecycle(lagometer_adapter_table& t) noexcept {
    t.context_create = [](const lagometer_context_config* config, lagometer_context** out) noexcept {
      return guarded([&] { return create<Context>(out, completed(*config)); });
    };
    t.context_enable = [](lagometer_context* c) noexcept { return done([&] { object<Context>(c).enable(); }); };
    t.context_destroy = [](lagometer_context* c) noexcept { destroy<Context>(c); };
    t.node_create = [](lagometer_context* c, lagometer_string name, lagometer_node** out) noexcept {
      return create<Node>(out, object<Context>(c), view(name));
    };
    t.node_destroy = [](lagometer_node* n) noexcept { destroy<Node>(n); };
    t.type_create = [](lagometer_context* c, const lagometer_type_config* config, lagometer_type** out) noexcept {
      return create_checked<Type>(out, &object<Context>(c), config);
    };
    t.type_destroy = [](lagometer_type* type) noexcept { destroy<Type>(type); };
    t.writer_create = [](lagometer_node* n, const lagometer_endpoint_config* config, lagometer_writer** out) noexcept {
      return create_checked<Writer>(out, &object<Node>(n), config);
    };
    t.writer_enable = [](lagometer_writer* w) noexcept { return done([&] { object<Writer>(w).enable(); }); };
    t.writer_destroy = [](lagometer_writer* w) noexcept { destroy<Writer>(w); };
    t.reader_create = [](lagometer_node* n, const lagometer_endpoint_config* config, lagometer_reader** out) noexcept {
      return create_checked<Reader>(out, &object<Node>(n), config);
    };
    t.reader_enable = [](lagometer_reader* r) noexcept { return done([&] { object<Reader>(r).enable(); }); };
    t.reader_destroy = [](lagometer_reader* r) noexcept { destroy<Reader>(r); };
  }

  /// If the host's samples are shorter than this header's, it gets a few at a time, through whole ones.
  static constexpr uint32_t kShortBatch = 16;
  static lagometer_status take_short(Reader& reader, lagometer_sample* samples, uint32_t stride, uint32_t max,
                                     uint32_t& taken) {
    lagometer_sample whole[kShortBatch];
    const uint32_t most = std::min(max, kShortBatch);
    for (uint32_t i = 0; i < most; ++i) whole[i] = completed(sample_at(samples, stride, i));
    const lagometer_status status = reader.take(whole, sizeof whole[0], most, taken);
    for (uint32_t i = 0; status >= 0 && i < taken; ++i) give_back(whole[i], sample_at(samples, stride, i));
    return status;
  }
  static void release_short(Reader& reader, lagometer_sample* samples, uint32_t stride, uint32_t count) {
    lagometer_sample whole[kShortBatch];
    const uint32_t given = std::min(count, kShortBatch);  // no more were taken at once
    for (uint32_t i = 0; i < given; ++i) whole[i] = completed(sample_at(samples, stride, i));
    reader.release(whole, sizeof whole[0], given);
  }
  template <typename Struct, typename Function>
  static lagometer_status ask(Struct& out, Function&& function) noexcept {
    return guarded([&] {
      return with_whole(out, [&](Struct& whole) {
        function(whole);
        return LAGOMETER_OK;
      });
    });
  }

  static void traffic(lagometer_adapter_table& t) noexcept {
    t.borrow = [](lagometer_writer* w, uint64_t bytes, lagometer_message* m) noexcept {
      return guarded([&] {
        return with_whole(*m, [&](lagometer_message& message) { return object<Writer>(w).borrow(bytes, message); });
      });
    };
    t.commit = [](lagometer_writer* w, lagometer_message* m) noexcept {
      return guarded([&] {
        return with_whole(*m, [&](lagometer_message& message) { return object<Writer>(w).commit(message); });
      });
    };
    t.discard = [](lagometer_writer* w, lagometer_message* m) noexcept {
      guarded([&] {
        return with_whole(*m, [&](lagometer_message& message) {
          object<Writer>(w).discard(message);
          return LAGOMETER_OK;
        });
      });
    };
    t.take = [](lagometer_reader* r, lagometer_sample* samples, uint32_t stride, uint32_t max,
                uint32_t* taken) noexcept {
      return guarded([&] {
        if (__builtin_expect(max > 0 && samples->size < sizeof *samples, 0))
          return take_short(object<Reader>(r), samples, stride, max, *taken);
        return object<Reader>(r).take(samples, stride, max, *taken);
      });
    };
    t.release = [](lagometer_reader* r, lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
      done([&] {
        if (__builtin_expect(count > 0 && samples->size < sizeof *samples, 0))
          return release_short(object<Reader>(r), samples, stride, count);
        object<Reader>(r).release(samples, stride, count);
      });
    };
    t.writer_matched = [](lagometer_writer* w, lagometer_matched* out) noexcept {
      return ask(*out, [&](lagometer_matched& whole) { object<Writer>(w).matched(whole); });
    };
    t.reader_matched = [](lagometer_reader* r, lagometer_matched* out) noexcept {
      return ask(*out, [&](lagometer_matched& whole) { object<Reader>(r).matched(whole); });
    };
    t.writer_counters = [](lagometer_writer* w, lagometer_counters* out) noexcept {
      return ask(*out, [&](lagometer_counters& whole) { object<Writer>(w).counters(whole); });
    };
    t.reader_counters = [](lagometer_reader* r, lagometer_counters* out) noexcept {
      return ask(*out, [&](lagometer_counters& whole) { object<Reader>(r).counters(whole); });
    };
  }

  static lagometer_status wait(Waitset& waitset, int64_t until_ns) {
#if __cplusplus >= 202002L
    if constexpr (!requires { waitset.wait(until_ns); }) {
      uint32_t none = 0;
      return waitset.wait_ready(until_ns, {}, none);
    } else
#endif
      return waitset.wait(until_ns);
  }

  static void waiting(lagometer_adapter_table& t) noexcept {
    t.waitset_create = [](lagometer_context* c, lagometer_waitset** out) noexcept {
      return create<Waitset>(out, object<Context>(c));
    };
    t.waitset_attach = [](lagometer_waitset* w, lagometer_reader* r) noexcept {
      return done([&] { object<Waitset>(w).attach(object<Reader>(r)); });
    };
    t.waitset_wait = [](lagometer_waitset* w, int64_t until_ns) noexcept {
      return guarded([&] { return wait(object<Waitset>(w), until_ns); });
    };
#if __cplusplus >= 202002L  // roscpp's headers require C++17: that adapter stays on waitset_wait
    if constexpr (requires(Waitset& w, uint32_t n) { w.wait_ready(int64_t{}, std::span<uint32_t>{}, n); }) {
      t.waitset_wait_ready = [](lagometer_waitset* w, int64_t until_ns, uint32_t* ready, uint32_t max,
                                uint32_t* count) noexcept {
        return guarded([&] { return object<Waitset>(w).wait_ready(until_ns, std::span(ready, max), *count); });
      };
    }
#endif
    t.waitset_trigger = [](lagometer_waitset* w) noexcept { done([&] { object<Waitset>(w).trigger(); }); };
    t.waitset_destroy = [](lagometer_waitset* w) noexcept { destroy<Waitset>(w); };
  }
};

}  // namespace lagometer

/// Defines an adapter's only exported symbol.
#define LAGOMETER_EXPORT_ADAPTER(TRAITS)                                                              \
  extern "C" const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) noexcept { \
    return lagometer::serves(given) ? lagometer::Binding<TRAITS>::table() : nullptr;                  \
  }
