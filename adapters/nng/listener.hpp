// SPDX-License-Identifier: Apache-2.0
// Dispatch by listener: nng calls back when an asynchronous receive has ended, and the next is begun then.
#pragma once

#include <atomic>
#include <cstdint>

#include "binding.hpp"
#include "socket.hpp"

namespace lagometer::nng {

/// When and where a thread of nng's noticed a message; 0: none did.
struct Noticed {
  int64_t at_ns = 0;
  uint32_t cpu = 0;
};

/// Calls a reader's on_data for one message after the other. Until it is taken the message lies here, and those behind
/// it in nng's queue.
class Listener {
 public:
  Listener(nng_socket socket, lagometer_data_function on_data, void* user);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// Returns when no call runs or will run.
  ~Listener();

  void start() noexcept { receive_next(); }
  /// The message that lies here, or none. [thread: any, one at a time]
  Message take(Noticed& noticed) noexcept;

 private:
  static void on_end(void* self) noexcept { static_cast<Listener*>(self)->end(); }
  void end() noexcept;
  void let_go() noexcept;
  void receive_next() noexcept { nng_recv_aio(socket_, aio_); }

  nng_socket socket_;
  lagometer_data_function on_data_;
  void* user_;
  nng_aio* aio_ = nullptr;
  Message message_;
  Noticed noticed_;
  std::atomic<bool> lies_here_{false};
  std::atomic<int> holders_{0};  // the call under way and the message that lies here: the last to go begins the next
};

}  // namespace lagometer::nng
