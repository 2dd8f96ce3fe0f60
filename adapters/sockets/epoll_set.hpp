// SPDX-License-Identifier: Apache-2.0
// What one thread waits on: the sockets of some readers, and a trigger.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <span>

#include "callback_slots.hpp"
#include "descriptor.hpp"

namespace lagometer::sockets {

/// A reader, as seen by threads that wait for its sockets. A tag identifies the socket.
class Source {
 public:
  virtual ~Source() = default;
  /// The listening socket of a stream reader.
  static constexpr uint32_t door = 0xFFFF'FFFF;

  /// A socket is readable (or, for the door, has a connection to accept). [thread: the waiting one]
  virtual void readable(uint32_t tag) noexcept = 0;
  /// Calls the listener if a socket was readable. [thread: the context's]
  virtual void deliver(int64_t woken_ns, uint32_t cpu) noexcept = 0;
  /// Whether a message is in its own buffer, where the kernel does not know about it.
  [[nodiscard]] virtual bool buffered() const noexcept = 0;

 protected:
  Source() = default;
  Source(const Source&) = default;
  Source& operator=(const Source&) = default;
};

using Events = std::array<epoll_event, 64>;

/// Shared by its waiting thread and its readers, which may outlive the waiting object.
class EpollSet {
 public:
  /// The event data of the trigger.
  static constexpr uint64_t triggered = ~uint64_t{0};
  static constexpr size_t sources_max = 1024;

  EpollSet();

  /// A reader joins and gets a slot, which identifies every socket that it watches. Leaving waits until it is no longer
  /// served.
  uint32_t join(Source& source) { return sources_.add(source); }
  void leave(uint32_t slot) noexcept { sources_.remove(slot); }
  void watch(int socket, uint32_t slot, uint32_t tag);
  void forget(int socket) noexcept;

  /// Events until host time `until_ns`; empty: no event, or an interruption.
  std::span<epoll_event> wait(Events& events, int64_t until_ns) noexcept;
  /// Ends one wait, the current or the next. [thread: any]
  void trigger() noexcept;
  void clear_trigger() noexcept;

  [[nodiscard]] bool anything_buffered() noexcept;
  /// Calls f(slot, source) for each source in the set.
  template <typename Function>
  void serve_all(Function&& function) noexcept {
    for (uint32_t slot = 0; slot < sources_.end(); ++slot)
      sources_.serve(slot, [&](Source& source) noexcept { function(slot, source); });
  }
  [[nodiscard]] static uint32_t slot_of(const epoll_event& event) noexcept {
    return static_cast<uint32_t>(event.data.u64 >> 32U);
  }
  template <typename Function>
  void serve(const epoll_event& event, Function&& function) noexcept {
    sources_.serve(slot_of(event),
                   [&](Source& source) noexcept { function(source, static_cast<uint32_t>(event.data.u64)); });
  }

 private:
  CallbackSlots<Source, sources_max> sources_;
  Descriptor epoll_;
  Descriptor trigger_;
};

}  // namespace lagometer::sockets
