// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstdint>

namespace lagometer::sockets {

/// 127.0.0.1 with this port; 0: the kernel chooses one.
inline sockaddr_in loopback(uint16_t port) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace lagometer::sockets
