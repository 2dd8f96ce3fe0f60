// SPDX-License-Identifier: Apache-2.0
// The buffers that the kernel gave to the middleware's sockets, which may be less than it asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace lagometer::cyclonedds {

/// The smallest of several sockets, as it would be asked for; nothing if there are none.
struct SocketBuffers {
  std::optional<uint64_t> receive_bytes;
  std::optional<uint64_t> send_bytes;
};

/// The UDP sockets that this process has when this is made.
class UdpSockets {
 public:
  UdpSockets();
  /// Of those that have been opened since.
  [[nodiscard]] SocketBuffers buffers_of_later_ones() const;

 private:
  std::set<int> descriptors_;
};

}  // namespace lagometer::cyclonedds
