// SPDX-License-Identifier: Apache-2.0
// MQTT 3.1.1 through libmosquitto and a broker. adapter.json lists what it supports, README.md what it can't do.
#include "objects.hpp"

namespace lagometer::mqtt {
namespace {

struct Traits {
  using Context = mqtt::Context;
  using Node = mqtt::Node;
  using Type = mqtt::Type;
  using Writer = mqtt::Writer;
  using Reader = mqtt::Reader;
  using Waitset = mqtt::Waitset;
  static constexpr std::string_view name = "mqtt";

  static std::string probe(std::string_view options) {
    Settings::from("default", options);
    int major = 0;
    int minor = 0;
    int revision = 0;
    mosquitto_lib_version(&major, &minor, &revision);
    const std::string version =
        "libmosquitto " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(revision);
    return nlohmann::json{
        {"version", version}, {"abilities", nlohmann::json::object()}, {"limits", nlohmann::json::object()}}
        .dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->settings().describe().dump();
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe();
    return R"({"settings":{},"paste":[]})";
  }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace
}  // namespace lagometer::mqtt

LAGOMETER_EXPORT_ADAPTER(lagometer::mqtt::Traits)
