// SPDX-License-Identifier: Apache-2.0
// Eclipse iceoryx 2.0 through its C++ interface. adapter.json lists what it supports, README.md what it can't do.
#include <iceoryx_versions.hpp>

#include "context.hpp"
#include "reader.hpp"
#include "services.hpp"
#include "waitset.hpp"
#include "writer.hpp"

namespace lagometer::iceoryx {
namespace {

struct Traits {
  using Context = iceoryx::Context;
  using Node = iceoryx::Node;
  using Type = iceoryx::Type;
  using Writer = iceoryx::Writer;
  using Reader = iceoryx::Reader;
  using Waitset = iceoryx::Waitset;
  static constexpr std::string_view name = abilities.adapter;

  static std::string probe(std::string_view) {
    return nlohmann::json{{"version", ICEORYX_LATEST_RELEASE_VERSION},
                          {"abilities", {{"history", {"keep_last", "keep_all"}}}},
                          {"limits", {{"payload_bytes_max", abilities.payload_bytes_max}}}}
        .dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return floor::describe_context(abilities).dump();
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe().dump();
    return R"({"settings":{},"paste":[]})";
  }
  using Ends = std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>>;
  static Ends make_client(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto end = make_client_end(node.context, request, reply);
    return {std::make_unique<Writer>(node, request, end), std::make_unique<Reader>(node, reply, end)};
  }
  static Ends make_server(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto end = make_server_end(node.context, request, reply);
    return {std::make_unique<Writer>(node, reply, end), std::make_unique<Reader>(node, request, end)};
  }
  static const void* extension(uint32_t kind, void*, std::string_view wanted) noexcept {
    return services_extension<Traits>(kind, wanted);
  }
};

}  // namespace
}  // namespace lagometer::iceoryx

LAGOMETER_EXPORT_ADAPTER(lagometer::iceoryx::Traits)
