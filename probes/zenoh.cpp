// SPDX-License-Identifier: Apache-2.0
// Functions of zenoh-c, the C library of Zenoh, in programs other than ours. Its messages have no time stamp, and it
// copies them before they leave, so a message is known by its content: a hash of its key and of its payload's first and
// last bytes. This file includes none of its headers; it asks the library for whatever it needs.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>

#include "declaration.hpp"
#include "journal.hpp"
#include "next.hpp"

namespace lagometer::probes {
namespace {

constexpr uint64_t kHashedBytes = 2048;  // of the payload's beginning, and of its end

/// z_bytes_reader_t and z_view_string_t, which are smaller: whoever calls the library has their memory.
struct Opaque {
  std::array<uint64_t, 16> words;
};

/// z_owned_closure_sample_t.
struct Closure {
  void* context;
  void (*call)(void* sample, void* context);
  void (*drop)(void* context);
};

/// The library's functions that say what a message is.
struct Zenoh {
  const void* (*bytes)(const void* owned);
  size_t (*length)(const void* bytes);
  Opaque (*reader)(const void* bytes);
  size_t (*read)(Opaque* reader, uint8_t* to, size_t size);
  int8_t (*seek)(Opaque* reader, int64_t offset, int origin);
  const void* (*sample_key)(const void* sample);
  const void* (*sample_payload)(const void* sample);
  void (*key_text)(const void* key, Opaque* view);
  const void* (*text)(const Opaque* view);
  const char* (*characters)(const void* text);
  size_t (*text_length)(const void* text);

  [[nodiscard]] bool is_whole() const noexcept {
    return bytes != nullptr && length != nullptr && reader != nullptr && read != nullptr && seek != nullptr &&
           sample_key != nullptr && sample_payload != nullptr && key_text != nullptr && text != nullptr &&
           characters != nullptr && text_length != nullptr;
  }
};

template <typename Function>
void find(Function*& function, void* caller, const char* name) noexcept {
  function = reinterpret_cast<Function*>(function_of(caller, name));
}

Zenoh zenoh_of(void* caller) noexcept {
  Zenoh found{};
  find(found.bytes, caller, "z_bytes_loan");
  find(found.length, caller, "z_bytes_len");
  find(found.reader, caller, "z_bytes_get_reader");
  find(found.read, caller, "z_bytes_reader_read");
  find(found.seek, caller, "z_bytes_reader_seek");
  find(found.sample_key, caller, "z_sample_keyexpr");
  find(found.sample_payload, caller, "z_sample_payload");
  find(found.key_text, caller, "z_keyexpr_as_view_string");
  find(found.text, caller, "z_view_string_loan");
  find(found.characters, caller, "z_string_data");
  find(found.text_length, caller, "z_string_len");
  return found;
}

/// Looked up once: a process has one such library. Nothing for ROS 2, whose own stamps say more.
const Zenoh& zenoh(void* caller) noexcept {
  static const Zenoh found =
      function_of(caller, "rmw_get_implementation_identifier") != nullptr ? Zenoh{} : zenoh_of(caller);
  return found;
}

// --- which message it is ---

uint64_t mixed(uint64_t state, uint64_t word) noexcept {
  state = (state ^ word) * 0x9E3779B97F4A7C15U;  // 2⁶⁴ over the golden ratio: it spreads every bit
  return state ^ (state >> 29U);
}

uint64_t mixed(uint64_t state, const void* bytes, size_t size) noexcept {
  const auto* next = static_cast<const uint8_t*>(bytes);
  for (; size > 0; size -= size < 8 ? size : 8, next += 8) {
    uint64_t word = 0;
    std::memcpy(&word, next, size < 8 ? size : 8);
    state = mixed(state, word);
  }
  return state;
}

/// A key's text; valid as long as the key and the view are.
std::string_view text_of(const Zenoh& library, const void* key, Opaque& view) noexcept {
  library.key_text(key, &view);
  const void* const text = library.text(&view);
  return {library.characters(text), library.text_length(text)};
}

KeyRecord content_of(const Zenoh& library, uint64_t key_hash, const void* payload) noexcept {
  std::array<uint8_t, kHashedBytes> part;
  const uint64_t size = library.length(payload);
  uint64_t hash = mixed(key_hash, size);
  Opaque reader = library.reader(payload);
  hash = mixed(hash, part.data(), library.read(&reader, part.data(), part.size()));
  if (size > kHashedBytes) {
    if (size > 2 * kHashedBytes) library.seek(&reader, -static_cast<int64_t>(kHashedBytes), SEEK_END);
    hash = mixed(hash, part.data(), library.read(&reader, part.data(), part.size()));
  }
  KeyRecord record{};
  record.kind = static_cast<uint8_t>(KeyKind::content);
  record.stream = kStreamUnknown;
  record.sequence = hash;
  record.payload_bytes = static_cast<uint32_t>(size);
  return record;
}

// --- what a program creates ---

void declare(Call call, uint64_t object, std::string_view key) noexcept {
  Entered entered;
  entered.left();
  Declaration declaration;
  declaration.text(0, key.data(), key.size());
  declaration.write(entered, call, object, 0);
}

/// The publishers of a key in this process count as one: a program may move a publisher to another address.
void declare_publisher(uint64_t key_hash, std::string_view key) noexcept {
  static std::array<std::atomic<uint64_t>, 256> known{};
  for (std::atomic<uint64_t>& each : known) {
    uint64_t there = 0;
    if (each.compare_exchange_strong(there, key_hash, std::memory_order_relaxed)) {
      declare(Call::declare_writer, key_hash, key);
      return;
    }
    if (there == key_hash) return;
  }
}

// --- putting ---

/// Calls `put`, which consumes the payload, and records which message it put.
template <typename Put>
int8_t put_through(void* caller, const void* key, const void* payload, Put&& put) {
  const Zenoh& library = zenoh(caller);
  if (!library.is_whole() || key == nullptr || payload == nullptr) return put();
  Opaque view{};
  const std::string_view text = text_of(library, key, view);
  const uint64_t key_hash = mixed(1, text.data(), text.size());
  const KeyRecord content = content_of(library, key_hash, library.bytes(payload));
  Entered entered;
  const int8_t result = put();
  entered.left();
  if (result != 0) return result;
  declare_publisher(key_hash, text);
  CallRecord record{};
  record.descriptor = -1;
  record.object = key_hash;
  entered.write(Call::api_write, record, {&content, 1});
  return result;
}

/// The key of a publisher; null: the library does not say.
const void* key_of(void* caller, const char* function, const void* publisher) noexcept {
  using Key = const void*(const void*);
  auto* const key = reinterpret_cast<Key*>(function_of(caller, function));
  return key != nullptr ? key(publisher) : nullptr;
}

// --- subscribing ---

/// A subscriber's own closure, with the number of the subscriber.
struct Followed {
  Closure own;
  const Zenoh* library;
  uint64_t subscriber;
};

void take(void* sample, void* context) {
  const auto* const followed = static_cast<const Followed*>(context);
  if (records_program()) {
    Entered entered;
    entered.left();
    const Zenoh& library = *followed->library;
    Opaque view{};
    const std::string_view key = text_of(library, library.sample_key(sample), view);
    const uint64_t key_hash = mixed(1, key.data(), key.size());
    const KeyRecord content = content_of(library, key_hash, library.sample_payload(sample));
    CallRecord record{};
    record.descriptor = -1;
    record.object = followed->subscriber;
    entered.write(Call::api_take, record, {&content, 1});
  }
  followed->own.call(sample, followed->own.context);
}

void drop(void* context) {
  auto* const followed = static_cast<Followed*>(context);
  if (followed->own.drop != nullptr) followed->own.drop(followed->own.context);
  delete followed;
}

/// Puts a closure in the place of the program's, which the library then owns.
void follow(void* caller, const void* key, Closure* closure) noexcept {
  static std::atomic<uint64_t> subscribers{0};
  const Zenoh& library = zenoh(caller);
  if (!records_program() || !library.is_whole() || closure == nullptr || closure->call == nullptr) return;
  const uint64_t number = subscribers.fetch_add(1, std::memory_order_relaxed) + 1;
  auto* const followed = new (std::nothrow) Followed{*closure, &library, number};
  if (followed == nullptr) return;
  Opaque view{};
  declare(Call::declare_reader, number, text_of(library, key, view));
  *closure = {followed, take, drop};
}

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)

using Put = int8_t(const void*, const void*, void*, void*);
using PublisherPut = int8_t(const void*, void*, void*);
using Subscribe = int8_t(const void*, void*, const void*, Closure*, void*);
using BackgroundSubscribe = int8_t(const void*, const void*, Closure*, void*);

LAGOMETER_PROBE int8_t z_put(const void* session, const void* key, void* payload, void* options) {
  static constinit NextOfProcess next("z_put");
  void* const caller = LAGOMETER_CALLER;
  auto* const put = reinterpret_cast<Put*>(next.need(caller));
  if (!records_program()) return put(session, key, payload, options);
  return put_through(caller, key, payload, [&] { return put(session, key, payload, options); });
}

#define LAGOMETER_PUBLISHER_PUT(name, key)                                           \
  LAGOMETER_PROBE int8_t name(const void* publisher, void* payload, void* options) { \
    static constinit NextOfProcess next(#name);                                      \
    void* const caller = LAGOMETER_CALLER;                                           \
    auto* const put = reinterpret_cast<PublisherPut*>(next.need(caller));            \
    if (!records_program()) return put(publisher, payload, options);                 \
    return put_through(caller, key_of(caller, key, publisher), payload,              \
                       [&] { return put(publisher, payload, options); });            \
  }
LAGOMETER_PUBLISHER_PUT(z_publisher_put, "z_publisher_keyexpr")
LAGOMETER_PUBLISHER_PUT(ze_advanced_publisher_put, "ze_advanced_publisher_keyexpr")

#define LAGOMETER_SUBSCRIBER(name)                                                                      \
  LAGOMETER_PROBE int8_t name(const void* session, void* subscriber, const void* key, Closure* closure, \
                              void* options) {                                                          \
    static constinit NextOfProcess next(#name);                                                         \
    void* const caller = LAGOMETER_CALLER;                                                              \
    auto* const subscribe = reinterpret_cast<Subscribe*>(next.need(caller));                            \
    follow(caller, key, closure);                                                                       \
    return subscribe(session, subscriber, key, closure, options);                                       \
  }
LAGOMETER_SUBSCRIBER(z_declare_subscriber)
LAGOMETER_SUBSCRIBER(ze_declare_advanced_subscriber)

#define LAGOMETER_BACKGROUND_SUBSCRIBER(name)                                                          \
  LAGOMETER_PROBE int8_t name(const void* session, const void* key, Closure* closure, void* options) { \
    static constinit NextOfProcess next(#name);                                                        \
    void* const caller = LAGOMETER_CALLER;                                                             \
    auto* const subscribe = reinterpret_cast<BackgroundSubscribe*>(next.need(caller));                 \
    follow(caller, key, closure);                                                                      \
    return subscribe(session, key, closure, options);                                                  \
  }
LAGOMETER_BACKGROUND_SUBSCRIBER(z_declare_background_subscriber)
LAGOMETER_BACKGROUND_SUBSCRIBER(ze_declare_background_advanced_subscriber)
