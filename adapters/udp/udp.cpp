// SPDX-License-Identifier: Apache-2.0
// The UDP floor: loopback, one datagram per message, nothing repeated.
#include "datagram_reader.hpp"
#include "datagram_writer.hpp"
#include "waitset.hpp"

namespace lagometer::sockets {

const floor::Abilities abilities{
    .adapter = "udp", .transport = "udp", .reliable = false, .keep_all = false, .payload_bytes_max = 65'507};

namespace {

struct Traits {
  using Context = sockets::Context;
  using Node = sockets::Node;
  using Type = sockets::Type;
  using Writer = DatagramWriter;
  using Reader = DatagramReader;
  using Waitset = sockets::Waitset<DatagramReader>;
  static constexpr std::string_view name = "udp";

  static std::string probe(std::string_view) { return probe_socket(); }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_CONTEXT) return floor::describe_context(abilities).dump();
    return R"({"settings":{},"paste":[]})";
  }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace

}  // namespace lagometer::sockets

LAGOMETER_EXPORT_ADAPTER(lagometer::sockets::Traits)
