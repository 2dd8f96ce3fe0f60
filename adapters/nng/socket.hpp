// SPDX-License-Identifier: Apache-2.0
// nng's handles as objects that close themselves.
#pragma once

#include <nng/nng.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "settings.hpp"

namespace lagometer::nng {

/// Throws the error that an nng function returned. `what` names the call: "listening at ipc:///x".
[[noreturn]] void throw_nng_error(int error, const std::string& what);

struct FreeMessage {
  void operator()(nng_msg* message) const noexcept { nng_msg_free(message); }
};
using Message = std::unique_ptr<nng_msg, FreeMessage>;

/// A socket, its settings, and how many others it is connected to. [thread: any]
class Socket {
 public:
  /// `opener`: nng_pub0_open, nng_sub0_open and similar.
  explicit Socket(int (*opener)(nng_socket*));
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  /// Returns when its connections have ended.
  ~Socket();
  [[nodiscard]] nng_socket get() const noexcept { return socket_; }

  /// `constant`: as a program writes it, e.g. "NNG_OPT_SENDBUF".
  void set(const char* option, const std::string& constant, int value);
  [[nodiscard]] int number(const char* option, const std::string& constant) const;
  /// NNG_OPT_RECVMAXSZ, 0: messages of any size. Call it before it listens or dials.
  void accept_any_size();
  /// NNG_OPT_SENDTIMEO: how long a send waits for room, in whole milliseconds, at least one.
  void wait_at_most(int64_t duration_ns);
  /// NNG_OPT_SUB_SUBSCRIBE with the topic that every message begins with.
  void subscribe_to_all();

  /// Returns the address at which it listens, for TCP with the port that the kernel chose.
  std::string listen(const std::string& address);
  /// Connects in the background, and again whenever the connection breaks, until disconnect().
  nng_dialer connect(const std::string& address);
  static void disconnect(nng_dialer dialer) noexcept { nng_dialer_close(dialer); }

  /// Connections whose other end has identified itself.
  [[nodiscard]] uint32_t connections() const noexcept { return connections_.load(); }
  /// NNG_OPT_RECVFD: readable while there is a message.
  [[nodiscard]] int receive_descriptor() const;
  [[nodiscard]] std::string describe() const { return settings_.describe("a C program, once a socket is open").dump(); }

 private:
  static void on_connection(nng_pipe pipe, nng_pipe_ev event, void* self) noexcept;

  std::atomic<uint32_t> connections_{0};
  nng_socket socket_ = NNG_SOCKET_INITIALIZER;
  brokerless::Settings settings_;
};

}  // namespace lagometer::nng
