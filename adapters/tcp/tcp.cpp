// SPDX-License-Identifier: Apache-2.0
// The TCP floor: loopback, or the link between hosts; ports that the kernel chooses, no delay.
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <string>

#include "internet.hpp"
#include "stream_family.hpp"
#include "stream_reader.hpp"
#include "stream_writer.hpp"
#include "traits.hpp"

namespace lagometer::sockets {

const floor::Abilities abilities{.adapter = "tcp",
                                 .transport = "tcp",
                                 .reliable = true,
                                 .keep_all = true,
                                 .payload_bytes_max = 1ULL << 30,
                                 .between_hosts = true};

namespace {

struct Traits : SocketTraits<StreamWriter, StreamReader> {
  static constexpr std::string_view name = "tcp";
};

}  // namespace

Listening bind_stream(const Context& context) {
  Listening result{Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), {}, {}};
  sockaddr_in address = context.own_end();
  socklen_t size = sizeof address;
  if (!result.socket.valid() || bind(result.socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(result.socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("binding a TCP socket to " + internet::text_of(context.own_end()));
  }
  result.address = internet::text_of(address);
  return result;
}

Descriptor connect_stream(const Context& context, const std::string& address, BufferSizes& default_sizes) {
  Descriptor result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!result.valid()) throw_system_error("making a TCP socket");
  default_sizes = context.size_buffers(result.get());
  const int yes = 1;
  if (setsockopt(result.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
    throw_system_error("setting TCP_NODELAY");
  const timeval limit{.tv_sec = 1, .tv_usec = 0};  // limits connecting; sending never blocks in the kernel
  setsockopt(result.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_in peer = internet::end_from(address);
  if (connect(result.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) result.reset();
  return result;
}

}  // namespace lagometer::sockets

LAGOMETER_EXPORT_ADAPTER(lagometer::sockets::Traits)
