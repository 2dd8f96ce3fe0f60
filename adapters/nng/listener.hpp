// SPDX-License-Identifier: Apache-2.0
// Dispatch by listener: nng calls back when an asynchronous receive has ended, and then the next one starts.
#pragma once

#include <atomic>
#include <cstdint>

#include "binding.hpp"
#include "socket.hpp"

namespace lagometer::nng {

/// When and where one of nng's threads noticed a message; 0: none did.
struct Noticed {
  int64_t at_ns = 0;
  uint32_t cpu = 0;
};

/// Calls a reader's on_data for one message after the other. Until the message is taken it stays here, and later ones
/// stay in nng's queue.
class Listener {
 public:
  Listener(nng_socket socket, lagometer_data_function on_data, void* user);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  /// Returns when no call is running or will run.
  ~Listener();

  void start() noexcept { receive_next(); }
  /// The message that is here, or none. [thread: any, one at a time]
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
  std::atomic<int> holders_{0};  // the running call and the message here: the last to leave starts the next receive
};

}  // namespace lagometer::nng
