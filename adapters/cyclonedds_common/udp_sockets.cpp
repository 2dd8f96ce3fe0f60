// SPDX-License-Identifier: Apache-2.0
#include "udp_sockets.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace lagometer::cyclonedds {

namespace {

std::optional<int> option_of(int descriptor, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (getsockopt(descriptor, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
  return value;
}

bool is_udp(int descriptor) {
  const int family = option_of(descriptor, SO_DOMAIN).value_or(AF_UNSPEC);
  const bool internet = family == AF_INET || family == AF_INET6;
  return internet && option_of(descriptor, SO_TYPE) == SOCK_DGRAM;
}

std::set<int> udp_descriptors() {
  std::set<int> found;
  std::error_code refused;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", refused)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    if (is_udp(descriptor)) found.insert(descriptor);
  }
  return found;
}

void keep_smallest(std::optional<uint64_t>& smallest, const std::optional<int>& bytes) {
  if (!bytes) return;
  // The kernel counts its own overhead in and so reports twice what was asked for (socket(7)).
  const auto asked = static_cast<uint64_t>(*bytes) / 2;
  smallest = std::min(smallest.value_or(asked), asked);
}

}  // namespace

UdpSockets::UdpSockets() : descriptors_(udp_descriptors()) {}

SocketBuffers UdpSockets::buffers_of_later_ones() const {
  SocketBuffers buffers;
  for (const int descriptor : udp_descriptors()) {
    if (descriptors_.contains(descriptor)) continue;
    keep_smallest(buffers.receive_bytes, option_of(descriptor, SO_RCVBUF));
    keep_smallest(buffers.send_bytes, option_of(descriptor, SO_SNDBUF));
  }
  return buffers;
}

}  // namespace lagometer::cyclonedds
