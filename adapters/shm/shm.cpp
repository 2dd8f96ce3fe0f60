// SPDX-License-Identifier: Apache-2.0
// The shared-memory floor: what a message between processes costs with only memory and a futex.
#include "context.hpp"
#include "reader.hpp"
#include "waitset.hpp"
#include "writer.hpp"

namespace lagometer::shm {

namespace {

using nlohmann::json;

json setting(const json& value, const json& vendor_default) { return {{"value", value}, {"default", vendor_default}}; }

struct Traits {
  using Context = shm::Context;
  using Node = shm::Node;
  using Type = shm::Type;
  using Writer = shm::Writer;
  using Reader = shm::Reader;
  using Waitset = shm::Waitset;
  static constexpr std::string_view name = abilities.adapter;

  static std::string probe(std::string_view) {
    const json result{{"version", floor::version()},
                      {"abilities",
                       {{"history", {"keep_last", "keep_all"}},
                        {"reliability", {"best_effort", "reliable"}},
                        {"waitset_contexts", true}}},
                      {"limits", {{"payload_bytes_max", abilities.payload_bytes_max}}}};
    return result.dump();
  }

  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) return floor::describe_context(abilities).dump();
    json settings = json::object();
    if (kind == LAGOMETER_OBJECT_WRITER) {
      const auto& writer = *static_cast<const Writer*>(object);
      settings["queue_messages"] = setting(writer.queue_limit(), floor::depth_default);
      settings["pool_slots"] = setting(writer.slots(), writer.slots());
      settings["blocking_ns_max"] = setting(writer.endpoint().blocking_ns_max, floor::blocking_ns_default);
    } else if (kind == LAGOMETER_OBJECT_READER) {
      const auto& reader = *static_cast<const Reader*>(object);
      settings["queue_messages"] = setting(reader.queue_limit(), floor::depth_default);
    }
    return json{{"settings", settings}, {"paste", json::array()}}.dump();
  }

  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace

}  // namespace lagometer::shm

LAGOMETER_EXPORT_ADAPTER(lagometer::shm::Traits)
