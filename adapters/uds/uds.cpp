// SPDX-License-Identifier: Apache-2.0
// The Unix-domain floor: stream sockets with names in the trial's runtime directory.
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <string>

#include "rendezvous.hpp"
#include "stream_family.hpp"
#include "stream_reader.hpp"
#include "stream_writer.hpp"
#include "traits.hpp"

namespace lagometer::sockets {

const floor::Abilities abilities{
    .adapter = "uds", .transport = "unix-socket", .reliable = true, .keep_all = true, .payload_bytes_max = 1ULL << 30};

namespace {

sockaddr_un named(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Error(LAGOMETER_INVALID, "uds: '" + path + "' is longer than a socket's name may be (" +
                                       std::to_string(sizeof address.sun_path - 1) +
                                       " bytes); use a shorter runtime directory");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

struct Traits : SocketTraits<StreamWriter, StreamReader> {
  static constexpr std::string_view name = "uds";
};

}  // namespace

Listening bind_stream(const Context& context) {
  const std::string path = (context.folder() / rendezvous::unique_name("u")).string();
  const sockaddr_un address = named(path);
  Listening result{Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), path, path};
  if (!result.socket.valid() ||
      bind(result.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_system_error("binding " + path);
  }
  return result;
}

Descriptor connect_stream(const Context& context, const std::string& address, BufferSizes& default_sizes) {
  Descriptor result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!result.valid()) throw_system_error("making a Unix-domain socket");
  default_sizes = context.size_buffers(result.get());
  const timeval limit{.tv_sec = 1, .tv_usec = 0};  // limits connecting; sending never blocks in the kernel
  setsockopt(result.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const sockaddr_un peer = named(address);
  if (connect(result.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) result.reset();
  return result;
}

}  // namespace lagometer::sockets

LAGOMETER_EXPORT_ADAPTER(lagometer::sockets::Traits)
