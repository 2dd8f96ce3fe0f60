// SPDX-License-Identifier: Apache-2.0
// What an adapter must reject, each time with a reason: what it does not know, and what it declares as missing.
#include "contract.hpp"

namespace lagometer::conformance {

namespace {

/// Creates and enables a writer, or a reader with everything it needs, and destroys it.
void make_writer(Context& context, const EndpointSpec& spec) {
  Writer writer(context, spec, 0);
  writer.enable();
}
void make_reader(Context& context, const EndpointSpec& spec) {
  Reader reader(context, spec, {.user = nullptr, .on_data = [](void*) {}});
  reader.enable();
}

void unknown_type(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.type = "no-such-type";
  must_refuse("the type no-such-type", std::nullopt, [&] { make_writer(context, spec); });
}

void unknown_type_flag(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.type_flags = 1U << 31U;
  must_refuse("a type with an unknown flag", LAGOMETER_INVALID, [&] { make_writer(context, spec); });
}

void keyed_type(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.type_flags = LAGOMETER_TYPE_KEYED;
  // INVALID if types may have keys, otherwise UNSUPPORTED.
  must_refuse("a type with a key and without instances", std::nullopt, [&] { make_writer(context, spec); });
}

void unknown_endpoint_flag(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.flags = 1U << 31U;
  must_refuse("a writer with an unknown flag", LAGOMETER_INVALID, [&] { make_writer(context, spec); });
  must_refuse("a reader with an unknown flag", LAGOMETER_INVALID, [&] { make_reader(context, spec); });
}

void unknown_qos_bit(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.qos.more_present = 1ULL << 63U;
  must_refuse("a writer with an unknown quality of service", LAGOMETER_INVALID, [&] { make_writer(context, spec); });
  must_refuse("a reader with an unknown quality of service", LAGOMETER_INVALID, [&] { make_reader(context, spec); });
}

void unknown_dispatch(Bed& bed) {
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.dispatch = 99;
  must_refuse("a reader with dispatch 99", std::nullopt, [&] { make_reader(context, spec); });
}

void unknown_profile(Bed& bed) {
  ContextSpec spec = bed.context;
  spec.profile = "no-such-profile";
  must_refuse("the profile no-such-profile", std::nullopt, [&] { const Context context(bed.adapter, spec); });
}

void lacking_abilities(Bed& bed) {
  Context context(bed.adapter, bed.context);
  const auto lacks = [&](const char* ability, const char* value, const std::function<void(EndpointSpec&)>& ask,
                         bool of_reader) {
    if (bed.declares(ability, value)) return;
    EndpointSpec spec = bed.endpoint();
    ask(spec);
    must_refuse(std::string(ability) + " " + value + ", which the sidecar does not list,", LAGOMETER_UNSUPPORTED,
                [&] { of_reader ? make_reader(context, spec) : make_writer(context, spec); });
  };
  for (const bool of_reader : {false, true}) {
    lacks("reliability", "reliable", [](EndpointSpec& s) { s.qos.reliable = true; }, of_reader);
    lacks("reliability", "best_effort", [](EndpointSpec& s) { s.qos.reliable = false; }, of_reader);
    lacks("history", "keep_all", [](EndpointSpec& s) { s.qos.keep_all = true; }, of_reader);
    lacks("history", "keep_last", [](EndpointSpec& s) { s.qos.keep_all = false; }, of_reader);
    lacks("durability", "transient_local", [](EndpointSpec& s) { s.qos.transient_local = true; }, of_reader);
    for (const PayloadType& type : engine::kPayloadTypes) {
      const auto ask = [&type](EndpointSpec& s) {
        s.type = type.name;
        if (!type.has_size(s.bytes)) s.bytes = type.bytes_min;
      };
      lacks("types", type.name, ask, of_reader);
    }
  }
  lacks("dispatch", "listener", [](EndpointSpec& s) { s.dispatch = LAGOMETER_DISPATCH_LISTENER; }, true);
  lacks("dispatch", "waitset", [](EndpointSpec& s) { s.dispatch = LAGOMETER_DISPATCH_WAITSET; }, true);
  lacks("dispatch", "poll", [](EndpointSpec& s) { s.dispatch = LAGOMETER_DISPATCH_POLL; }, true);
}

struct NamedPolicy {
  const char* name;
  void (*ask)(QosSpec& qos);
};
constexpr NamedPolicy kPolicies[] = {
    {"deadline", [](QosSpec& qos) { qos.deadline_ns = 1'000 * kMillisecond_ns; }},
    {"lifespan", [](QosSpec& qos) { qos.lifespan_ns = 1'000 * kMillisecond_ns; }},
    {"liveliness", [](QosSpec& qos) { qos.lease_ns = 1'000 * kMillisecond_ns; }},
    {"partition", [](QosSpec& qos) { qos.partition = "elsewhere"; }},
};

void lacking_policies(Bed& bed) {
  Context context(bed.adapter, bed.context);
  for (const NamedPolicy& policy : kPolicies) {
    if (bed.declares("policies", policy.name)) continue;
    EndpointSpec spec = bed.endpoint();
    policy.ask(spec.qos);
    const std::string what = std::string(" with the policy ") + policy.name + ", which the sidecar does not list,";
    must_refuse("a writer" + what, LAGOMETER_UNSUPPORTED, [&] { make_writer(context, spec); });
    must_refuse("a reader" + what, LAGOMETER_UNSUPPORTED, [&] { make_reader(context, spec); });
  }
}

void lacking_security(Bed& bed) {
  if (!bed.sidecar.at("abilities").at("security").empty()) throw Absent("the sidecar lists security");
  ContextSpec spec = bed.context;
  spec.security = R"({"kind":"sign"})";
  must_refuse("a context with security, which the sidecar does not list,", std::nullopt,
              [&] { const Context context(bed.adapter, spec); });
}

void beyond_the_limit(Bed& bed) {
  const std::optional<uint64_t> limit = bed.limit("payload_bytes_max");
  if (!limit) throw Absent("the sidecar declares no limit");
  Context context(bed.adapter, bed.context);
  EndpointSpec spec = bed.endpoint();
  spec.bytes = *limit + 1;
  must_refuse("a payload above the declared limit", std::nullopt, [&] {
    Writer writer(context, spec, 0);
    writer.enable();
    writer.send(0, spec.bytes);
  });
}

}  // namespace

std::vector<Line> refusing_lines() {
  return {{"refuses: an unknown type", unknown_type},
          {"refuses: an unknown flag of a type (INVALID)", unknown_type_flag},
          {"refuses: a type with a key and without instances (INVALID, or UNSUPPORTED without keys)", keyed_type},
          {"refuses: an unknown flag of an endpoint (INVALID)", unknown_endpoint_flag},
          {"refuses: an unknown bit of the quality of service (INVALID)", unknown_qos_bit},
          {"refuses: an unknown dispatch", unknown_dispatch},
          {"refuses: an unknown profile", unknown_profile},
          {"refuses: each ability that the sidecar does not list (UNSUPPORTED)", lacking_abilities},
          {"refuses: each policy that the sidecar does not list (UNSUPPORTED)", lacking_policies},
          {"refuses: security that the sidecar does not list", lacking_security},
          {"refuses: payloads above the declared limit", beyond_the_limit}};
}

}  // namespace lagometer::conformance
