// SPDX-License-Identifier: Apache-2.0
#include "socket.hpp"

#include <cerrno>
#include <mutex>
#include <utility>

#include "binding.hpp"

namespace lagometer::zeromq {

void throw_zmq_error(const std::string& what) {
  const int error = zmq_errno();
  const bool resource = error == EMFILE || error == ENOMEM || error == EMTHREAD || error == EADDRNOTAVAIL;
  throw Error(resource ? LAGOMETER_NO_RESOURCE : LAGOMETER_FAILED, "zeromq: " + what + ": " + zmq_strerror(error));
}

std::shared_ptr<Library> Library::open(int io_threads) {
  static std::mutex mutex;
  static std::weak_ptr<Library> shared;
  const std::scoped_lock lock(mutex);
  std::shared_ptr<Library> library = shared.lock();
  if (!library) {
    library = std::make_shared<Library>(io_threads);
    shared = library;
  }
  if (library->io_threads_ != io_threads) {
    throw Error(LAGOMETER_INVALID, "zeromq: io_threads is " + std::to_string(io_threads) + " here and " +
                                       std::to_string(library->io_threads_) +
                                       " elsewhere in this process, which has one ZeroMQ context");
  }
  return library;
}

Library::Library(int io_threads) : context_(zmq_ctx_new()), io_threads_(io_threads) {
  if (context_ == nullptr) throw_zmq_error("making a context");
  if (zmq_ctx_set(context_, ZMQ_IO_THREADS, io_threads) != 0) throw_zmq_error("setting ZMQ_IO_THREADS");
}

Library::~Library() {
  while (zmq_ctx_term(context_) != 0 && zmq_errno() == EINTR) {
  }
}

Socket::Socket(std::shared_ptr<Library> library, int kind)
    : library_(std::move(library)), socket_(zmq_socket(library_->get(), kind)) {
  if (socket_ == nullptr) throw_zmq_error("making a socket");
  set(ZMQ_LINGER, "ZMQ_LINGER", 0);  // messages that nobody has read when it closes are of no use
}

Socket::~Socket() { zmq_close(socket_); }

int Socket::number(int option) const {
  int value = 0;
  size_t size = sizeof value;
  if (zmq_getsockopt(socket_, option, &value, &size) != 0) throw_zmq_error("reading an option");
  return value;
}

void Socket::set(int option, const std::string& name, int value, bool readable) {
  const int usual = readable ? number(option) : 0;
  if (zmq_setsockopt(socket_, option, &value, sizeof value) != 0) {
    throw_zmq_error("setting " + name + " to " + std::to_string(value));
  }
  const int now = readable ? number(option) : value;
  settings_.put(name, now, usual,
                "zmq_setsockopt(socket, " + name + ", &(int){" + std::to_string(now) + "}, sizeof(int));");
}

void Socket::put(int option, int value) {
  if (zmq_setsockopt(socket_, option, &value, sizeof value) != 0) throw_zmq_error("setting an option");
}

void Socket::subscribe_to_all() {
  if (zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, "", 0) != 0) throw_zmq_error("subscribing");
}

}  // namespace lagometer::zeromq
