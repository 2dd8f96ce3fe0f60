// SPDX-License-Identifier: Apache-2.0
// Turns four C++ classes into the table of adapter.h, so that an adapter is written in plain C++: methods that return a
// status or throw. Every exception ends here: it becomes host->fail(what) and LAGOMETER_FAILED (Error: its own status).
//
// A Traits type names the classes and says what the adapter is:
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
// borrow, commit, take and wait return lagometer_status; the other methods return void.
#pragma once

#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "lagometer/adapter.h"

namespace lagometer {

/// An error with a status of its own, e.g. Error(LAGOMETER_UNSUPPORTED, "udp can't be reliable").
class Error : public std::runtime_error {
 public:
  Error(lagometer_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] lagometer_status status() const noexcept { return status_; }

 private:
  lagometer_status status_;
};

/// The host that loaded this library; set by the entry function.
inline const lagometer_host* host = nullptr;

inline std::string_view view(lagometer_string text) noexcept {
  return text.data == nullptr ? std::string_view{} : std::string_view{text.data, text.size};
}
inline lagometer_string to_c(std::string_view text) noexcept { return {text.data(), text.size()}; }

inline int64_t now_ns() noexcept { return host->now_ns(host->self); }
inline void log(uint32_t level, std::string_view text) noexcept { host->log(host->self, level, to_c(text)); }

/// The element number `index` of an array whose elements lie `stride` bytes apart.
inline lagometer_sample& sample_at(lagometer_sample* samples, uint32_t stride, uint32_t index) noexcept {
  return *reinterpret_cast<lagometer_sample*>(reinterpret_cast<char*>(samples) + size_t{stride} * index);
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

/// For an adapter that has nothing to set: refuses every option, and profiles other than the two.
inline void refuse_settings(std::string_view adapter, const lagometer_context_config& config) {
  const std::string options(view(config.options));
  const std::string profile(view(config.profile));
  if (!options.empty() && options != "{}")
    throw Error(LAGOMETER_INVALID, std::string(adapter) + " has no options: leave out " + options);
  if (!profile.empty() && profile != "default" && profile != "matched")
    throw Error(LAGOMETER_INVALID, std::string(adapter) + " has no profile '" + profile + "'; valid: default, matched");
}

/// Base for objects that have nothing to start, to count or to tell; what an adapter knows better it defines itself.
struct Plain {
  void enable() {}
  void discard(lagometer_message&) {}
  void matched(lagometer_matched& out) const { out.exact = 2; }
  void counters(lagometer_counters& out) const { out.present = 0; }
};

/// A node that is but a name, and a type that is but a size.
template <typename Context>
struct PlainNode {
  PlainNode(Context& given, std::string_view) : context(given) {}
  Context& context;
};
template <typename Context>
struct PlainType {
  PlainType(Context&, const lagometer_type_config& config) : max_bytes(config.max_bytes) {}
  uint64_t max_bytes;
};

/// Base for Traits without settings, without extensions.
struct PlainTraits {
  static std::string describe(uint32_t, const void*) { return R"({"settings":{},"paste":[]})"; }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
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
      return create<Context>(out, *config);
    };
    t.context_enable = [](lagometer_context* c) noexcept { return done([&] { object<Context>(c).enable(); }); };
    t.context_destroy = [](lagometer_context* c) noexcept { destroy<Context>(c); };
    t.node_create = [](lagometer_context* c, lagometer_string name, lagometer_node** out) noexcept {
      return create<Node>(out, object<Context>(c), view(name));
    };
    t.node_destroy = [](lagometer_node* n) noexcept { destroy<Node>(n); };
    t.type_create = [](lagometer_context* c, const lagometer_type_config* config, lagometer_type** out) noexcept {
      return create<Type>(out, object<Context>(c), *config);
    };
    t.type_destroy = [](lagometer_type* type) noexcept { destroy<Type>(type); };
    t.writer_create = [](lagometer_node* n, const lagometer_endpoint_config* config, lagometer_writer** out) noexcept {
      return create<Writer>(out, object<Node>(n), *config);
    };
    t.writer_enable = [](lagometer_writer* w) noexcept { return done([&] { object<Writer>(w).enable(); }); };
    t.writer_destroy = [](lagometer_writer* w) noexcept { destroy<Writer>(w); };
    t.reader_create = [](lagometer_node* n, const lagometer_endpoint_config* config, lagometer_reader** out) noexcept {
      return create<Reader>(out, object<Node>(n), *config);
    };
    t.reader_enable = [](lagometer_reader* r) noexcept { return done([&] { object<Reader>(r).enable(); }); };
    t.reader_destroy = [](lagometer_reader* r) noexcept { destroy<Reader>(r); };
  }

  static void traffic(lagometer_adapter_table& t) noexcept {
    t.borrow = [](lagometer_writer* w, uint64_t bytes, lagometer_message* m) noexcept {
      return guarded([&] { return object<Writer>(w).borrow(bytes, *m); });
    };
    t.commit = [](lagometer_writer* w, lagometer_message* m) noexcept {
      return guarded([&] { return object<Writer>(w).commit(*m); });
    };
    t.discard = [](lagometer_writer* w, lagometer_message* m) noexcept {
      done([&] { object<Writer>(w).discard(*m); });
    };
    t.take = [](lagometer_reader* r, lagometer_sample* samples, uint32_t stride, uint32_t max,
                uint32_t* taken) noexcept {
      return guarded([&] { return object<Reader>(r).take(samples, stride, max, *taken); });
    };
    t.release = [](lagometer_reader* r, lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
      done([&] { object<Reader>(r).release(samples, stride, count); });
    };
    t.writer_matched = [](lagometer_writer* w, lagometer_matched* out) noexcept {
      return done([&] { object<Writer>(w).matched(*out); });
    };
    t.reader_matched = [](lagometer_reader* r, lagometer_matched* out) noexcept {
      return done([&] { object<Reader>(r).matched(*out); });
    };
    t.writer_counters = [](lagometer_writer* w, lagometer_counters* out) noexcept {
      return done([&] { object<Writer>(w).counters(*out); });
    };
    t.reader_counters = [](lagometer_reader* r, lagometer_counters* out) noexcept {
      return done([&] { object<Reader>(r).counters(*out); });
    };
  }

  static void waiting(lagometer_adapter_table& t) noexcept {
    t.waitset_create = [](lagometer_context* c, lagometer_waitset** out) noexcept {
      return create<Waitset>(out, object<Context>(c));
    };
    t.waitset_attach = [](lagometer_waitset* w, lagometer_reader* r) noexcept {
      return done([&] { object<Waitset>(w).attach(object<Reader>(r)); });
    };
    t.waitset_wait = [](lagometer_waitset* w, int64_t until_ns) noexcept {
      return guarded([&] { return object<Waitset>(w).wait(until_ns); });
    };
    t.waitset_trigger = [](lagometer_waitset* w) noexcept { done([&] { object<Waitset>(w).trigger(); }); };
    t.waitset_destroy = [](lagometer_waitset* w) noexcept { destroy<Waitset>(w); };
  }
};

}  // namespace lagometer

/// Defines the one exported symbol of an adapter.
#define LAGOMETER_EXPORT_ADAPTER(TRAITS)                                                                          \
  extern "C" const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) noexcept {             \
    if (given == nullptr || given->abi_version < LAGOMETER_ABI_VERSION || given->size < sizeof(lagometer_host)) { \
      return nullptr;                                                                                             \
    }                                                                                                             \
    lagometer::host = given;                                                                                      \
    return lagometer::Binding<TRAITS>::table();                                                                   \
  }
