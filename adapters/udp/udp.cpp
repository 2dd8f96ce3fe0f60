// SPDX-License-Identifier: Apache-2.0
// The UDP floor: loopback, or the link between hosts, one datagram per message, nothing repeated.
#include "datagram_reader.hpp"
#include "datagram_writer.hpp"
#include "traits.hpp"

namespace lagometer::sockets {

const floor::Abilities abilities{.adapter = "udp",
                                 .transport = "udp",
                                 .reliable = false,
                                 .keep_all = false,
                                 .payload_bytes_max = 65'507,
                                 .between_hosts = true};

namespace {

struct Traits : SocketTraits<DatagramWriter, DatagramReader> {
  static constexpr std::string_view name = "udp";
};

}  // namespace

}  // namespace lagometer::sockets

LAGOMETER_EXPORT_ADAPTER(lagometer::sockets::Traits)
