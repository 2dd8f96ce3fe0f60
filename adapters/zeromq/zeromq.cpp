// SPDX-License-Identifier: Apache-2.0
// ZeroMQ's PUB and SUB sockets through the C API of libzmq, and DEALER and ROUTER for request and reply. README.md
// lists what they can't do.
#include "reader.hpp"
#include "services.hpp"
#include "waitset.hpp"
#include "writer.hpp"

namespace lagometer::zeromq {
namespace {

struct Traits {
  using Context = zeromq::Context;
  using Node = zeromq::Node;
  using Type = zeromq::Type;
  using Writer = zeromq::Writer;
  using Reader = zeromq::Reader;
  using Waitset = brokerless::Waitset<Context, Reader>;
  static constexpr std::string_view name = abilities.adapter;

  static std::string probe(std::string_view options) {
    static_cast<void>(Choices(options));
    int major = 0;
    int minor = 0;
    int patch = 0;
    zmq_version(&major, &minor, &patch);
    const std::string version = std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
    const nlohmann::json result{{"version", version},
                                {"abilities", {{"waitset_contexts", true}}},
                                {"limits", {{"payload_bytes_max", abilities.payload_bytes_max}}}};
    return result.dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->describe();
    return PlainTraits::describe(kind, object);
  }
  using Ends = std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>>;
  static Ends make_client(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto line = std::make_shared<Line>(node.context.library(), ZMQ_DEALER);
    return {std::make_unique<Writer>(node, request, Kind::client, line),
            std::make_unique<Reader>(node, reply, Kind::client, line)};
  }
  static Ends make_server(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto line = std::make_shared<Line>(node.context.library(), ZMQ_ROUTER);
    return {std::make_unique<Writer>(node, reply, Kind::server, line),
            std::make_unique<Reader>(node, request, Kind::server, line)};
  }
  static const void* extension(uint32_t kind, void*, std::string_view wanted) noexcept {
    return services_extension<Traits>(kind, wanted);
  }
};

}  // namespace
}  // namespace lagometer::zeromq

LAGOMETER_EXPORT_ADAPTER(lagometer::zeromq::Traits)
