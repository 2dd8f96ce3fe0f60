// SPDX-License-Identifier: Apache-2.0
// The TCP floor: loopback, ports that the kernel chooses, no delay.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "loopback.hpp"
#include "stream_family.hpp"
#include "stream_reader.hpp"
#include "stream_writer.hpp"
#include "traits.hpp"

namespace lagometer::sockets {

const floor::Abilities abilities{
    .adapter = "tcp", .transport = "tcp", .reliable = true, .keep_all = true, .payload_bytes_max = 1ULL << 30};

namespace {

struct Traits : SocketTraits<StreamWriter, StreamReader> {
  static constexpr std::string_view name = "tcp";
};

}  // namespace

Listening bind_stream(const Context&) {
  Listening result{Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), {}, {}};
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (!result.socket.valid() || bind(result.socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(result.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("binding a TCP socket to 127.0.0.1");
  }
  result.address = std::to_string(ntohs(address.sin_port));
  return result;
}

Descriptor connect_stream(const Context& context, const std::string& address, BufferSizes& default_sizes) {
  Descriptor result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!result.valid()) throw_system_error("making a TCP socket");
  default_sizes = context.size_buffers(result.get());
  const int yes = 1;
  if (setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
    throw_system_error("setting TCP_NODELAY");
  const timeval limit{.tv_sec = 1, .tv_usec = 0};  // bounds the connecting; sending never blocks in the kernel
  setsockopt(result.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_in peer = loopback(static_cast<uint16_t>(std::stoi(address)));
  if (connect(result.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) result.reset();
  return result;
}

}  // namespace lagometer::sockets

LAGOMETER_EXPORT_ADAPTER(lagometer::sockets::Traits)
