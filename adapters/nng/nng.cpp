// SPDX-License-Identifier: Apache-2.0
// nng's PUB and SUB sockets through its C API. What they can't is in README.md.
#include "reader.hpp"
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
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace
}  // namespace lagometer::nng

LAGOMETER_EXPORT_ADAPTER(lagometer::nng::Traits)
