// SPDX-License-Identifier: Apache-2.0
// faulty: wraps another adapter and damages messages in a predictable way. With nothing to inject it is that adapter,
// one call deeper. README.md describes each fault.
#include "writer.hpp"

namespace lagometer::faulty {

Context::Context(const lagometer_context_config& config)
    : faults_(Faults::parse(view(config.options))), table_(open_inner(faults_.over, faults_.library)) {
  lagometer_context_config inner_config = config;
  const std::string options = faults_.inner_options.dump();
  inner_config.options = to_c(options);
  check_inner(table_.context_create(&inner_config, &inner_));
}

namespace {

using nlohmann::json;

void append(void* user, lagometer_string text) { static_cast<std::string*>(user)->append(text.data, text.size); }

template <typename Object>
json described(const lagometer_adapter_table& table, uint32_t kind, const Object* object) {
  std::string text;
  check_inner(table.describe(kind, object, append, &text));
  json value = json::parse(text, nullptr, false);
  return value.is_object() ? value : json{{"settings", json::object()}, {"paste", json::array()}};
}

/// What the inner adapter reports about itself, except for the requested lie.
std::string pretending(const Faults& faults, json description) {
  if (!faults.pretend_transport.empty()) {
    description["transport"] = {{"within_process", {faults.pretend_transport}},
                                {"between_processes", {faults.pretend_transport}}};
  }
  return description.dump();
}

struct Traits {
  using Context = faulty::Context;
  using Node = faulty::Node;
  using Type = faulty::Type;
  using Writer = faulty::Writer;
  using Reader = faulty::Reader;
  using Waitset = faulty::Waitset;
  static constexpr std::string_view name = "faulty";

  static std::string probe(std::string_view options) {
    const Faults faults = Faults::parse(options);
    const std::string inner_options = faults.inner_options.dump();
    std::string text;
    check_inner(open_inner(faults.over, faults.library).probe(to_c(inner_options), append, &text));
    return text;
  }

  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_CONTEXT) {
      const auto& context = *static_cast<const Context*>(object);
      json description = described(context.table(), kind, context.inner());
      for (const auto& [key, value] : context.faults().in_force.items())
        description["settings"]["faulty." + key] = {{"value", value}, {"default", nullptr}};
      return pretending(context.faults(), std::move(description));
    }
    if (kind == LAGOMETER_OBJECT_WRITER) return described_endpoint<Writer>(kind, object);
    if (kind == LAGOMETER_OBJECT_READER) return described_endpoint<Reader>(kind, object);
    return R"({"settings":{},"paste":[]})";
  }

  /// An extension would bypass the faults, so none is offered.
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }

 private:
  template <typename Endpoint>
  static std::string described_endpoint(uint32_t kind, const void* object) {
    const auto& endpoint = *static_cast<const Endpoint*>(object);
    return pretending(endpoint.faults(), described(endpoint.table(), kind, endpoint.inner()));
  }
};

}  // namespace
}  // namespace lagometer::faulty

LAGOMETER_EXPORT_ADAPTER(lagometer::faulty::Traits)
