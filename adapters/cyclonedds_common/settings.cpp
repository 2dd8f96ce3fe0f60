// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <cstdlib>

#include "errors.hpp"
#include "series.hpp"

namespace lagometer::cyclonedds {

namespace {

using nlohmann::json;

// The vendor's defaults, the same in each series: its manual, "Configuration guide".
constexpr uint64_t kMaxMessageBytes = 14720;
constexpr uint64_t kFragmentBytes = 1344;
constexpr uint64_t kReceiveBufferBytes = 1048576;

// The capacity of a UDP datagram, minus the headers of RTPS: the kernel would reject larger ones, message by message.
constexpr uint64_t kDatagramBytes = 65500;
constexpr uint64_t kMostBytes = 1ULL << 30;

uint64_t number(const json& value, const std::string& key, uint64_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > most)
    throw invalid("option " + key + " must be a number of bytes from 1 to " + std::to_string(most));
  return value.get<uint64_t>();
}

bool is_asynchronous(const json& value) {
  if (value == "synchronous") return false;
  if (value == "asynchronous") return true;
  throw invalid("option delivery must be synchronous | asynchronous");
}

bool wants_shared_memory(const json& value) {
  if (!value.is_boolean()) throw invalid("option shared_memory must be true | false");
  if (value.get<bool>() && !shared_memory::is_built_in())
    throw unsupported("this Cyclone DDS was built without shared memory (ENABLE_SHM); leave out shared_memory");
  return value.get<bool>();
}

std::string element(const std::string& name, const std::string& content) {
  return content.empty() ? "" : "<" + name + ">" + content + "</" + name + ">";
}

std::string bytes_element(const std::string& name, const std::optional<uint64_t>& bytes) {
  return bytes ? element(name, std::to_string(*bytes) + "B") : "";
}

}  // namespace

Settings Settings::from(std::string_view profile, std::string_view options, uint32_t domain, std::string_view network) {
  Settings settings;
  settings.domain = domain;
  const json link = json::parse(network.empty() ? "{}" : network, nullptr, false);
  if (!link.is_object()) throw invalid("network must be a JSON object");
  if (link.contains("address")) settings.own_address = link.at("address").get<std::string>();
  if (profile == "matched") {
    // As large as a datagram may be, so that the results do not depend on how often a middleware calls the kernel.
    settings.max_message_bytes = 65500;
    settings.fragment_bytes = 65000;
    settings.socket_receive_buffer_bytes = 4194304;
  } else if (profile != "default") {
    throw invalid("profile '" + std::string(profile) + "' must be default | matched");
  }
  const json document = json::parse(options.empty() ? "{}" : options, nullptr, false);
  if (!document.is_object()) throw invalid("options must be a JSON object");
  for (const auto& [key, value] : document.items()) settings.apply(key, value);
  return settings;
}

void Settings::apply(const std::string& key, const json& value) {
  if (key == "max_message_size") {
    max_message_bytes = number(value, key, kDatagramBytes);
  } else if (key == "fragment_size") {
    fragment_bytes = number(value, key, kDatagramBytes);
  } else if (key == "socket_receive_buffer") {
    socket_receive_buffer_bytes = number(value, key, kMostBytes);
  } else if (key == "socket_send_buffer") {
    socket_send_buffer_bytes = number(value, key, kMostBytes);
  } else if (key == "delivery") {
    asynchronous_delivery = is_asynchronous(value);
  } else if (key == "shared_memory") {
    in_shared_memory = wants_shared_memory(value);
  } else if (key == "participant_index" && value.is_string()) {
    participant_index = value.get<std::string>();
  } else {
    throw invalid("option '" + key +
                  "' is not known or not of its type; known: max_message_size, fragment_size, socket_receive_buffer, "
                  "socket_send_buffer, delivery, shared_memory, participant_index");
  }
}

bool Settings::any() const { return !xml().empty(); }

std::string Settings::xml() const {
  std::string general =
      bytes_element("MaxMessageSize", max_message_bytes) + bytes_element("FragmentSize", fragment_bytes);
  if (own_address) general = element("Interfaces", "<NetworkInterface address=\"" + *own_address + "\"/>") + general;
  std::string internal;
  if (asynchronous_delivery) internal += element("SynchronousDeliveryPriorityThreshold", "1");
  if (socket_receive_buffer_bytes)
    internal += "<SocketReceiveBufferSize max=\"" + std::to_string(*socket_receive_buffer_bytes) + "B\"/>";
  if (socket_send_buffer_bytes)
    internal += "<SocketSendBufferSize min=\"default\" max=\"" + std::to_string(*socket_send_buffer_bytes) + "B\"/>";
  shared_memory::Configuration memory;
  if (in_shared_memory) memory = shared_memory::configuration(domain);
  const std::string inside = element("General", general + memory.general) +
                             element("Discovery", element("ParticipantIndex", participant_index.value_or(""))) +
                             element("Internal", internal) + memory.beside;
  return inside.empty() ? "" : "<CycloneDDS><Domain id=\"any\">" + inside + "</Domain></CycloneDDS>";
}

json Settings::describe() const {
  json settings = json::object();
  const auto put = [&](const char* key, const auto& value, const auto& usual) {
    if (value) settings[key] = {{"value", *value}, {"default", usual}};
  };
  put("General/MaxMessageSize", max_message_bytes, kMaxMessageBytes);
  put("General/FragmentSize", fragment_bytes, kFragmentBytes);
  put("Internal/SocketReceiveBufferSize[@max]", socket_receive_buffer_bytes, kReceiveBufferBytes);
  put("Internal/SocketSendBufferSize[@max]", socket_send_buffer_bytes, "default");
  put("General/Interfaces/NetworkInterface[@address]", own_address, "chosen by the vendor");
  put("Discovery/ParticipantIndex", participant_index, participant_index_default());
  if (asynchronous_delivery) settings["Internal/SynchronousDeliveryPriorityThreshold"] = {{"value", 1}, {"default", 0}};
  if (in_shared_memory) shared_memory::describe(domain, settings);
  json paste = json::array();
  if (any()) paste.push_back({{"file", "cyclonedds.xml, named by CYCLONEDDS_URI"}, {"text", xml()}});
  // The library always reads this variable, whatever an application does, so it is one of the effective settings.
  if (const char* uri = std::getenv("CYCLONEDDS_URI"); uri != nullptr && *uri != '\0' && !any())
    settings["CYCLONEDDS_URI"] = {{"value", uri}, {"default", ""}};
  // With shared memory, each endpoint reports whether it uses it.
  const json transport{{"within_process", {"process"}}, {"between_processes", {"udp"}}};
  return {{"settings", settings}, {"paste", paste}, {"transport", transport}};
}

}  // namespace lagometer::cyclonedds
