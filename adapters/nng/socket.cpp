// SPDX-License-Identifier: Apache-2.0
#include "socket.hpp"

#include <nng/protocol/pubsub0/sub.h>

#include <algorithm>
#include <limits>

#include "binding.hpp"

namespace lagometer::nng {

namespace {

void check(int error, const std::string& what) {
  if (error != 0) throw_nng_error(error, what);
}

}  // namespace

void throw_nng_error(int error, const std::string& what) {
  const bool resource = error == NNG_ENOMEM || error == NNG_ENOFILES || error == NNG_ENOSPC;
  throw Error(resource ? LAGOMETER_NO_RESOURCE : LAGOMETER_FAILED, "nng: " + what + ": " + nng_strerror(error));
}

Socket::Socket(int (*opener)(nng_socket*)) {
  check(opener(&socket_), "opening a socket");
  // nng reports each connection once before it is used and once after it is gone.
  for (const nng_pipe_ev event : {NNG_PIPE_EV_ADD_PRE, NNG_PIPE_EV_REM_POST}) {
    if (const int error = nng_pipe_notify(socket_, event, &Socket::on_connection, this); error != 0) {
      nng_close(socket_);
      throw_nng_error(error, "requesting notice of connections");
    }
  }
}

Socket::~Socket() { nng_close(socket_); }

void Socket::on_connection(nng_pipe, nng_pipe_ev event, void* self) noexcept {
  auto& connections = static_cast<Socket*>(self)->connections_;
  if (event == NNG_PIPE_EV_ADD_PRE) {
    connections.fetch_add(1);
  } else {
    connections.fetch_sub(1);
  }
}

int Socket::number(const char* option, const std::string& constant) const {
  int value = 0;
  check(nng_socket_get_int(socket_, option, &value), "reading " + constant);
  return value;
}

void Socket::set(const char* option, const std::string& constant, int value) {
  const int usual = number(option, constant);
  check(nng_socket_set_int(socket_, option, value), "setting " + constant + " to " + std::to_string(value));
  const int now = number(option, constant);
  settings_.put(constant, now, usual, "nng_socket_set_int(socket, " + constant + ", " + std::to_string(now) + ");");
}

void Socket::accept_any_size() {
  const auto bytes_max = [this] {
    size_t value = 0;
    check(nng_socket_get_size(socket_, NNG_OPT_RECVMAXSZ, &value), "reading NNG_OPT_RECVMAXSZ");
    return value;
  };
  const size_t usual = bytes_max();
  check(nng_socket_set_size(socket_, NNG_OPT_RECVMAXSZ, 0), "setting NNG_OPT_RECVMAXSZ to 0");
  settings_.put("NNG_OPT_RECVMAXSZ", bytes_max(), usual, "nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0);");
}

void Socket::wait_at_most(int64_t duration_ns) {
  constexpr int64_t millisecond_ns = 1'000'000;
  const int64_t rounded_ms = duration_ns / millisecond_ns + (duration_ns % millisecond_ns != 0 ? 1 : 0);
  const auto timeout_ms =
      static_cast<nng_duration>(std::clamp<int64_t>(rounded_ms, 1, std::numeric_limits<nng_duration>::max()));
  nng_duration usual_ms = 0;
  check(nng_socket_get_ms(socket_, NNG_OPT_SENDTIMEO, &usual_ms), "reading NNG_OPT_SENDTIMEO");
  check(nng_socket_set_ms(socket_, NNG_OPT_SENDTIMEO, timeout_ms), "setting NNG_OPT_SENDTIMEO");
  settings_.put("NNG_OPT_SENDTIMEO", timeout_ms, usual_ms,
                "nng_socket_set_ms(socket, NNG_OPT_SENDTIMEO, " + std::to_string(timeout_ms) + ");");
}

void Socket::subscribe_to_all() { check(nng_socket_set(socket_, NNG_OPT_SUB_SUBSCRIBE, "", 0), "subscribing"); }

std::string Socket::listen(const std::string& address) {
  nng_listener listener = NNG_LISTENER_INITIALIZER;
  check(nng_listen(socket_, address.c_str(), &listener, 0), "listening at " + address);
  if (!address.starts_with("tcp://")) return address;
  int port = 0;
  check(nng_listener_get_int(listener, NNG_OPT_TCP_BOUND_PORT, &port), "asking for the port");
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

nng_dialer Socket::connect(const std::string& address) {
  nng_dialer dialer = NNG_DIALER_INITIALIZER;
  // In the background, because the other end may be a stopped process: nng would wait 10 s for it.
  check(nng_dial(socket_, address.c_str(), &dialer, static_cast<int>(NNG_FLAG_NONBLOCK)), "dialing " + address);
  return dialer;
}

int Socket::receive_descriptor() const { return number(NNG_OPT_RECVFD, "NNG_OPT_RECVFD"); }

}  // namespace lagometer::nng
