// SPDX-License-Identifier: Apache-2.0
// LCM's provider udpm through its C API, on raw bytes: no lcm-gen. README.md lists what it can't do.
#include "reader.hpp"
#include "writer.hpp"

namespace lagometer::lcm {
namespace {

struct Traits {
  using Context = lcm::Context;
  using Node = lcm::Node;
  using Type = lcm::Type;
  using Writer = lcm::Writer;
  using Reader = lcm::Reader;
  using Waitset = lcm::Waitset;
  static constexpr std::string_view name = abilities.adapter;

  static std::string probe(std::string_view options) {
    static_cast<void>(Choices(options));
    // The library does not report its version: this is its header's.
    const std::string version = std::to_string(LCM_MAJOR_VERSION) + "." + std::to_string(LCM_MINOR_VERSION) + "." +
                                std::to_string(LCM_MICRO_VERSION);
    const nlohmann::json result{{"version", version},
                                {"abilities", nlohmann::json::object()},
                                {"limits", {{"payload_bytes_max", abilities.payload_bytes_max}}}};
    return result.dump();
  }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_WRITER) return Writer::describe();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_CONTEXT) return static_cast<const Context*>(object)->describe();
    return PlainTraits::describe(kind, object);
  }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace
}  // namespace lagometer::lcm

LAGOMETER_EXPORT_ADAPTER(lagometer::lcm::Traits)
