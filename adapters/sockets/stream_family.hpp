// SPDX-License-Identifier: Apache-2.0
// The difference between tcp and uds: each defines these two functions.
#pragma once

#include <sys/socket.h>

#include <string>

#include "context.hpp"

namespace lagometer::sockets {

/// A listening socket, and its address as text, for connect_stream().
struct Listening {
  Descriptor socket;
  std::string address;
  std::string remove_path;  // a file to remove with the socket, or empty
};

/// Binds a non-blocking socket for a subscriber; it does not listen yet, so that its buffers can be sized first.
Listening bind_stream(const Context& context);

/// Connects to a subscriber's socket; the result is invalid if nobody listens there any more. `default_sizes` gets the
/// sizes that the kernel would have used.
Descriptor connect_stream(const Context& context, const std::string& address, BufferSizes& default_sizes);

inline constexpr int backlog = 1024;

}  // namespace lagometer::sockets
