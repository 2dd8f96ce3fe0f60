// SPDX-License-Identifier: Apache-2.0
// The socket of a client or server, shared by its writer and its reader.
#pragma once

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "descriptor.hpp"
#include "socket.hpp"

namespace lagometer::zeromq {

/// What an endpoint is one end of: a topic has a socket for each end (PUB, SUB); a client (DEALER) and a server
/// (ROUTER) have one for both.
enum class Kind : uint8_t { topic, client, server };

class Line {
 public:
  Line(std::shared_ptr<Library> library, int socket_kind)
      : socket(std::move(library), socket_kind),
        nudge_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        both_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!nudge_.valid() || !both_.valid()) throw_system_error("making an eventfd");
    watch(socket.number(ZMQ_FD));
    watch(nudge_.get());
  }

  /// Becomes readable when the socket does, or when another thread's call noticed arrivals.
  [[nodiscard]] int descriptor() const noexcept { return both_.get(); }

  /// The taking thread checks the socket. Under the lock.
  void look() noexcept {
    taker_ = std::this_thread::get_id();
    eventfd_t ignored = 0;
    if (nudged_) eventfd_read(nudge_.get(), &ignored);
    nudged_ = false;
  }

  /// Call it after sending. libzmq reports an arrival once, and another thread's call has consumed that report. Under
  /// the lock.
  void note_arrivals() {
    if (taker_ == std::this_thread::get_id() || (socket.number(ZMQ_EVENTS) & ZMQ_POLLIN) == 0) return;
    nudged_ = true;
    eventfd_write(nudge_.get(), 1);
  }

  Socket socket;
  std::mutex mutex;  // for a client: until the start, one thread sends probes and another takes

 private:
  void watch(int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (epoll_ctl(both_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) throw_system_error("watching a socket");
  }

  Descriptor nudge_;
  Descriptor both_;
  std::thread::id taker_;
  bool nudged_ = false;
};

}  // namespace lagometer::zeromq
