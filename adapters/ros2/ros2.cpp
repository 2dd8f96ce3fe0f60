// SPDX-License-Identifier: Apache-2.0
// ROS 2 through rclcpp, over any rmw. adapter.json lists what it supports, README.md what it can't do.
#include <rclcpp/version.h>

#include "lagometer/executor.h"
#include "objects.hpp"
#include "reader.hpp"
#include "service_ends.hpp"
#include "services.hpp"
#include "timer.hpp"
#include "writer.hpp"

namespace lagometer::ros2 {
namespace {

constexpr lagometer_executor_table kExecutor{.size = sizeof(lagometer_executor_table),
                                             .abi_version = LAGOMETER_ABI_VERSION,
                                             .share = [](lagometer_context* context) noexcept -> lagometer_status {
                                               return guarded([&] {
                                                 reinterpret_cast<Context*>(context)->share_executor();
                                                 return LAGOMETER_OK;
                                               });
                                             }};

struct Traits {
  using Context = ros2::Context;
  using Node = ros2::Node;
  using Type = ros2::Type;
  using Writer = ros2::Writer;
  using Reader = ros2::Reader;
  using Waitset = ros2::Waitset;
  static constexpr std::string_view name = "ros2";

  static std::string probe(std::string_view options) {
    Settings::from("default", options);
    return nlohmann::json{{"version", "rclcpp " RCLCPP_VERSION_STR},
                          {"abilities", nlohmann::json::object()},
                          {"limits", nlohmann::json::object()}}
        .dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe().dump();
    return R"({"settings":{},"paste":[]})";
  }
#ifdef LAGOMETER_ROS2_INTERFACES
  static Ends make_client(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    return ros2::make_client(node, request, reply);
  }
  static Ends make_server(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
    return ros2::make_server(node, request, reply);
  }
#endif
  static const void* extension(uint32_t kind, void* object, std::string_view wanted) noexcept {
#ifdef LAGOMETER_ROS2_INTERFACES
    if (const void* table = lagometer::services_extension<Traits>(kind, wanted)) return table;
#endif
    if (kind == LAGOMETER_OBJECT_CONTEXT && wanted == LAGOMETER_EXECUTOR_EXTENSION) return &kExecutor;
    if (kind != LAGOMETER_OBJECT_NODE || wanted != LAGOMETER_TIMERS_EXTENSION) return nullptr;
    return static_cast<const Node*>(object)->context.settings().executor_timers ? &timers_table() : nullptr;
  }
};

}  // namespace
}  // namespace lagometer::ros2

LAGOMETER_EXPORT_ADAPTER(lagometer::ros2::Traits)
