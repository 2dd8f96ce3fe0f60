// SPDX-License-Identifier: Apache-2.0
// nng's PUB and SUB sockets through its C API, and REQ and REP in raw mode for request and reply. README.md lists what
// they can't do.
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>

#include "reader.hpp"
#include "services.hpp"
#include "waitset.hpp"
#include "writer.hpp"

namespace lagometer::nng {
namespace {

struct Traits {
  using Context = nng::Context;
  using Node = nng::Node;
  using Type = nng::Type;
  using Writer = nng::Writer;
  using Reader = nng::Reader;
  using Waitset = brokerless::Waitset<Context, Reader>;
  static constexpr std::string_view name = abilities.adapter;

  static std::string probe(std::string_view options) {
    static_cast<void>(Choices(options));
    const nlohmann::json result{{"version", nng_version()},
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
    const auto socket = std::make_shared<Socket>(&nng_req0_open_raw);
    return {std::make_unique<Writer>(node, request, Kind::client, socket),
            std::make_unique<Reader>(node, reply, Kind::client, socket)};
  }
  static Ends make_server(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto socket = std::make_shared<Socket>(&nng_rep0_open_raw);
    return {std::make_unique<Writer>(node, reply, Kind::server, socket),
            std::make_unique<Reader>(node, request, Kind::server, socket)};
  }
  static const void* extension(uint32_t kind, void*, std::string_view wanted) noexcept {
    return services_extension<Traits>(kind, wanted);
  }
};

}  // namespace
}  // namespace lagometer::nng

LAGOMETER_EXPORT_ADAPTER(lagometer::nng::Traits)
