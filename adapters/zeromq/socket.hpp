// SPDX-License-Identifier: Apache-2.0
// libzmq's handles as objects that close themselves.
#pragma once

#include <zmq.h>

#include <memory>
#include <string>

#include "settings.hpp"

namespace lagometer::zeromq {

/// Throws the error of libzmq's last call on this thread. `what` names it: "binding ipc:///x".
[[noreturn]] void throw_zmq_error(const std::string& what);

/// ZeroMQ's context: one per process, as its guide asks, so that inproc reaches everything in the process.
class Library {
 public:
  /// Errors: one already exists, with another number of threads.
  static std::shared_ptr<Library> open(int io_threads);
  explicit Library(int io_threads);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  /// Returns when all sockets are closed and its threads have ended.
  ~Library();
  [[nodiscard]] void* get() const noexcept { return context_; }

 private:
  void* context_;
  int io_threads_;
};

/// A socket and its settings. For one thread at a time.
class Socket {
 public:
  Socket(std::shared_ptr<Library> library, int kind);
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  [[nodiscard]] void* get() const noexcept { return socket_; }

  /// `name`: the constant, e.g. "ZMQ_SNDHWM". `readable`: libzmq can return this option's value.
  void set(int option, const std::string& name, int value, bool readable = true);
  /// The same without recording it: for options that are not the user's settings.
  void put(int option, int value);
  void subscribe_to_all();
  [[nodiscard]] int number(int option) const;
  [[nodiscard]] std::string describe() const { return settings_.describe("a C program, after zmq_socket()").dump(); }

 private:
  std::shared_ptr<Library> library_;
  void* socket_;
  brokerless::Settings settings_;
};

/// A message object; empty except between borrow and commit, or take and release.
class Message {
 public:
  Message() noexcept { zmq_msg_init(&message_); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { zmq_msg_close(&message_); }
  void clear() noexcept {
    zmq_msg_close(&message_);
    zmq_msg_init(&message_);
  }
  [[nodiscard]] zmq_msg_t* get() noexcept { return &message_; }

 private:
  zmq_msg_t message_{};
};

}  // namespace lagometer::zeromq
