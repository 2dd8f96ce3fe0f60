// SPDX-License-Identifier: Apache-2.0
// Eclipse Cyclone DDS through its C API. Each series' adapter.json lists what it supports, its README.md what it can't
// do.
#include <dds/version.h>

#include "objects.hpp"
#include "series.hpp"

namespace lagometer::cyclonedds {
namespace {

struct Traits {
  using Context = cyclonedds::Context;
  using Node = cyclonedds::Node;
  using Type = cyclonedds::Type;
  using Writer = cyclonedds::Writer;
  using Reader = cyclonedds::Reader;
  using Waitset = cyclonedds::Waitset;
  static constexpr std::string_view name = adapter_name;

  static std::string probe(std::string_view options) {
    Settings::from("default", options, 0);
    const nlohmann::json events{{"writer", {"matched", "deadline_missed", "incompatible_qos"}},
                                {"reader", {"matched", "lost", "deadline_missed", "incompatible_qos"}}};
    return nlohmann::json{{"version", DDS_VERSION},
                          {"abilities", {{"events", events}, {"waitset_contexts", true}}},
                          {"limits", nlohmann::json::object()}}
        .dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe().dump();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe().dump();
    return R"({"settings":{},"paste":[]})";
  }
  static const void* extension(uint32_t kind, void*, std::string_view asked) noexcept {
    return stamps_extension<Writer, Reader>(kind, asked, LAGOMETER_KEY_SOURCE_TIME);
  }
};

}  // namespace
}  // namespace lagometer::cyclonedds

LAGOMETER_EXPORT_ADAPTER(lagometer::cyclonedds::Traits)
