// SPDX-License-Identifier: Apache-2.0
// Whether iceoryx's daemon is running. Both iceoryx and the middleware based on it wait a minute for it and then end
// the process, so adapters check first.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>
#include <string_view>

#include "binding.hpp"
#include "descriptor.hpp"

namespace lagometer::roudi {

/// Where RouDi of the 2.0 series listens; neither RouDi nor an application can change it.
inline constexpr char socket_path[] = "/tmp/roudi";

inline bool is_running() noexcept {
  const Descriptor probe(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  static_assert(sizeof socket_path <= sizeof address.sun_path);
  std::memcpy(address.sun_path, socket_path, sizeof socket_path);
  return probe.valid() && connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// Throws if RouDi does not answer; `adapter` is the caller.
inline void require(std::string_view adapter) {
  if (is_running()) return;
  throw Error(LAGOMETER_FAILED, std::string(adapter) +
                                    ": RouDi, the daemon of iceoryx, does not run (nobody listens on " + socket_path +
                                    "); `lagometer run` starts it, by hand it is: iox-roudi (package iceoryx)");
}

}  // namespace lagometer::roudi
