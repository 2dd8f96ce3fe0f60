// SPDX-License-Identifier: Apache-2.0
// The contract of the entry, the table, probe, describe and extension, and of the lifecycle of objects.
#include <algorithm>
#include <atomic>

#include "contract.hpp"
#include "peer.hpp"

namespace lagometer::conformance {

namespace {

using nlohmann::json;

void host_of_no_version(Bed& bed) {
  static lagometer_host none = host();
  none.abi_version = 0;
  const bool served = bed.adapter.entry()(&none) != nullptr;
  bed.adapter.entry()(&host());
  if (served) throw Broken("lagometer_adapter returned a table to a host of ABI version 0: return null");
}

void whole_table(Bed& bed) {
  const lagometer_adapter_table& t = bed.table();
  if (const char* const missing = abi_host::missing_function(t); missing != nullptr)
    throw Broken(std::string("a function that may not be null is null: ") + missing);
  const int waiting = (t.waitset_create != nullptr) + (t.waitset_attach != nullptr) + (t.waitset_wait != nullptr) +
                      (t.waitset_trigger != nullptr) + (t.waitset_destroy != nullptr);
  if (waiting != 0 && waiting != 5)
    throw Broken("some of the five waitset functions are null: set all of them, or none");
  if (waiting == 0 && bed.declares("dispatch", "waitset"))
    throw Broken("the sidecar lists waitset, the table has none");
  if (waiting == 0 && t.waitset_wait_ready != nullptr) throw Broken("waitset_wait_ready is there, without waitsets");
}

void name_of_table(Bed& bed) {
  const std::string name(bed.table().name.data, bed.table().name.size);
  if (name != bed.sidecar.at("name")) throw Broken("the table's name is '" + name + "', the sidecar's differs");
}

struct Told {
  std::string text;
  int times = 0;
  static void sink(void* user, lagometer_string given) {
    auto& told = *static_cast<Told*>(user);
    told.text.append(given.data, given.size);
    ++told.times;
  }
};

Told probed(Bed& bed) {
  Told told;
  demand("probe", [&] { return bed.table().probe(to_c("{}"), &Told::sink, &told); });
  return told;
}

void probe_starts_nothing(Bed& bed) {
  const json before = held_now();
  probed(bed);
  const json after = held_now();
  for (const char* what : {"threads", "files", "descriptors"}) {
    if (before[what] != after[what])
      throw Broken(std::string("probe changed the number of ") + what + " from " + before[what].dump() + " to " +
                   after[what].dump());
  }
}

void probe_tells(Bed& bed) {
  const Told told = probed(bed);
  if (told.times != 1) throw Broken("probe called its sink " + std::to_string(told.times) + " times");
  const json said = json::parse(told.text, nullptr, false);
  if (!said.is_object() || !said.contains("version") || !said["version"].is_string() ||
      said["version"].get<std::string>().empty())
    throw Broken("probe said no version: " + told.text);
  const json abilities = said.value("abilities", json::object());
  for (const auto& [ability, value] : abilities.items()) {
    const json& declared = bed.sidecar.at("abilities").value(ability, json());
    if (declared != value)
      throw Broken("probe says " + ability + " " + value.dump() + ", the sidecar " + declared.dump());
  }
  const json limit = said.value("limits", json::object()).value("payload_bytes_max", json());
  const json declared = bed.sidecar.value("limits", json::object()).value("payload_bytes_max", json());
  // Nobody would reach a limit imposed by the length field itself.
  if (limit.is_number() && declared.is_number() && limit != declared)
    throw Broken("probe says a limit of " + limit.dump() + " bytes, the sidecar " + declared.dump());
}

void unknown_extension(Bed& bed) {
  if (bed.table().extension(LAGOMETER_OBJECT_ADAPTER, nullptr, to_c("no-such-extension/1")) != nullptr)
    throw Broken("extension() returned a table for \"no-such-extension/1\": return null for a name you don't have");
  Context context(bed.adapter, bed.context);
  if (bed.table().extension(LAGOMETER_OBJECT_CONTEXT, context.handle(), to_c("no-such-extension/1")) != nullptr)
    throw Broken("extension() of a context returned a table for \"no-such-extension/1\": return null");
}

void check_description(const std::string& object, const Told& told) {
  if (told.times != 1)
    throw Broken("describe of a " + object + " called its sink " + std::to_string(told.times) + " times");
  const json said = json::parse(told.text, nullptr, false);
  if (!said.is_object()) throw Broken("describe of a " + object + " is not a JSON object: " + told.text);
  static const json parts = {"settings", "paste", "observed", "transport"};
  for (const auto& [key, value] : said.items()) {
    if (std::find(parts.begin(), parts.end(), json(key)) == parts.end())
      throw Broken(std::string("describe of a ")
                       .append(object)
                       .append(" has the key \"")
                       .append(key)
                       .append("\", which nobody reads; known are: ")
                       .append(parts.dump()));
  }
  const json settings = said.value("settings", json::object());
  const json paste = said.value("paste", json::array());
  const json transports = said.value("transport", json::object());
  for (const auto& [key, entry] : settings.items()) {
    if (!entry.is_object() || !entry.contains("value") || !entry.contains("default"))
      throw Broken(std::string("setting ")
                       .append(key)
                       .append(" of a ")
                       .append(object)
                       .append(" has not both value and default: ")
                       .append(entry.dump()));
  }
  for (const json& part : paste) {
    if (!part.contains("file") || !part.contains("text"))
      throw Broken("what a " + object + " has to paste names no file or text: " + part.dump());
  }
  static const json known = {"process", "shared-memory", "unix-socket", "tcp", "udp"};
  for (const auto& [where, words] : transports.items()) {
    if (where != "within_process" && where != "between_processes")
      throw Broken(std::string("transport of a ").append(object).append(" has the key ").append(where));
    for (const json& word : words) {
      if (std::find(known.begin(), known.end(), word) == known.end())
        throw Broken("transport of a " + object + " says " + word.dump() + "; known are: " + known.dump());
    }
  }
}

void descriptions(Bed& bed) {
  Pair pair(bed, bed.endpoint());
  pair.meet();
  const auto check = [&](const char* name, uint32_t kind, const void* object) {
    Told told;
    demand("describe", [&] { return bed.table().describe(kind, object, &Told::sink, &told); });
    check_description(name, told);
  };
  check("context", LAGOMETER_OBJECT_CONTEXT, pair.context.handle());
  check("writer", LAGOMETER_OBJECT_WRITER, pair.writer.handle());
  check("reader", LAGOMETER_OBJECT_READER, pair.reader.handle());
}

void destroy_null(Bed& bed) {
  const InCall in_call("a destroy of null");
  bed.table().reader_destroy(nullptr);
  bed.table().writer_destroy(nullptr);
  bed.table().type_destroy(nullptr);
  bed.table().node_destroy(nullptr);
  bed.table().context_destroy(nullptr);
}

void never_enabled(Bed& bed) {
  Context context(bed.adapter, bed.context);
  const EndpointSpec spec = bed.endpoint();
  const Writer writer(context, spec, 0);
  const Reader reader(context, spec, {.user = nullptr, .on_data = [](void*) {}});
}

void nothing_before_enable(Bed& bed) {
  if (!bed.declares("dispatch", "listener")) throw Absent("it has no listener");
  Pair pair(bed, bed.endpoint());
  EndpointSpec spec = bed.endpoint();
  spec.dispatch = LAGOMETER_DISPATCH_LISTENER;
  std::atomic<uint64_t> calls{0};
  Reader early(pair.context, spec, {.user = &calls, .on_data = [](void* user) {
                                      static_cast<std::atomic<uint64_t>*>(user)->fetch_add(1);
                                    }});
  pair.meet();
  pair.exchange(50);
  if (calls.load() != 0)
    throw Broken("a reader that was not enabled was called " + std::to_string(calls.load()) + " times");
}

void lent_for_the_call(Bed& bed) {
  Pair pair(bed, bed.endpoint("a_topic_whose_name_goes"), {.spoils = true});
  pair.meet();
  pair.exchange(5);
}

}  // namespace

std::vector<Line> loading_lines() {
  return {{"probe: starts nothing", probe_starts_nothing},
          {"probe: a version, abilities and limits as in the sidecar, once", probe_tells},
          {"entry: null for a host of ABI version 0", host_of_no_version},
          {"table: every function is there, waitsets as a group", whole_table},
          {"table: the sidecar's name", name_of_table},
          {"extension: null for a name that nobody has", unknown_extension},
          {"describe: settings with value and default, known transports", descriptions},
          {"destroy: null does nothing", destroy_null},
          {"destroy: what was never enabled", never_enabled},
          {"enable: nothing arrives before it", nothing_before_enable},
          {"strings and structs are the adapter's during the call alone", lent_for_the_call}};
}

}  // namespace lagometer::conformance
