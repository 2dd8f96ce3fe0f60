// SPDX-License-Identifier: Apache-2.0
// ROS 1 through roscpp. adapter.json lists what it supports, README.md what it can't do.
#include <ros/common.h>

#include "layer_stamps.hpp"
#include "objects.hpp"
#include "reader.hpp"
#include "service_end.hpp"
#include "services.hpp"
#include "writer.hpp"

namespace lagometer::ros1 {
namespace {

struct Traits {
  using Context = ros1::Context;
  using Node = ros1::Node;
  using Type = ros1::Type;
  using Writer = ros1::Writer;
  using Reader = ros1::Reader;
  using Waitset = ros1::Waitset;
  static constexpr std::string_view name = "ros1";

  static std::string probe(std::string_view options) {
    Settings::from("default", options);
    const std::string version = std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." +
                                std::to_string(ROS_VERSION_PATCH);
    return nlohmann::json{
        {"version", version}, {"abilities", nlohmann::json::object()}, {"limits", nlohmann::json::object()}}
        .dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->settings().describe().dump();
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe().dump();
    return R"({"settings":{},"paste":[]})";
  }
  using Ends = std::pair<std::unique_ptr<Writer>, std::unique_ptr<Reader>>;
  static Ends make_client(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto end = make_client_end(node, request, reply);
    return {std::make_unique<Writer>(node, request, end), std::make_unique<Reader>(node, reply, end)};
  }
  static Ends make_server(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    const auto end = make_server_end(node, request, reply);
    return {std::make_unique<Writer>(node, reply, end), std::make_unique<Reader>(node, request, end)};
  }
  static const void* extension(uint32_t kind, void*, std::string_view wanted) noexcept {
    if (kind == LAGOMETER_OBJECT_NODE) return services_extension<Traits>(kind, wanted);
    return stamps_extension<Writer, Reader>(kind, wanted, LAGOMETER_KEY_NONE);
  }
};

}  // namespace
}  // namespace lagometer::ros1

LAGOMETER_EXPORT_ADAPTER(lagometer::ros1::Traits)
