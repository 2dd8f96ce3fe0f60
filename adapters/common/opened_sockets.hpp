// SPDX-License-Identifier: Apache-2.0
// The socket buffers that the kernel gave the middleware, which may be smaller than requested.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

namespace lagometer {

/// The internet sockets of one kind that this process opens after this object is created.
class OpenedSockets {
 public:
  /// `kind`: SOCK_DGRAM or SOCK_STREAM.
  explicit OpenedSockets(int kind) : kind_(kind), before_(descriptors()) {}

  /// The buffer closest to `wanted_bytes` among these sockets, in bytes as a program would request them (a socket that
  /// only sends keeps the kernel's default receive buffer). `option`: SO_RCVBUF or SO_SNDBUF. Nothing if there are no
  /// such sockets.
  [[nodiscard]] std::optional<uint64_t> closest_buffer(int option, uint64_t wanted_bytes) const {
    const auto distance = [wanted_bytes](uint64_t bytes) {
      return bytes > wanted_bytes ? bytes - wanted_bytes : wanted_bytes - bytes;
    };
    std::optional<uint64_t> closest;
    for (const int descriptor : descriptors()) {
      const std::optional<int> reported = option_of(descriptor, option);
      if (before_.contains(descriptor) || !reported) continue;
      // The kernel includes its own overhead and so reports twice the requested size (socket(7)).
      const auto bytes = static_cast<uint64_t>(*reported) / 2;
      if (!closest || distance(bytes) < distance(*closest)) closest = bytes;
    }
    return closest;
  }

 private:
  static std::optional<int> option_of(int descriptor, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    if (getsockopt(descriptor, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
    return value;
  }

  [[nodiscard]] std::set<int> descriptors() const {
    std::set<int> found;
    std::error_code refused;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", refused)) {
      const int descriptor = std::atoi(entry.path().filename().c_str());
      const int family = option_of(descriptor, SO_DOMAIN).value_or(AF_UNSPEC);
      const bool internet = family == AF_INET || family == AF_INET6;
      if (internet && option_of(descriptor, SO_TYPE) == kind_) found.insert(descriptor);
    }
    return found;
  }

  int kind_;
  std::set<int> before_;
};

}  // namespace lagometer
