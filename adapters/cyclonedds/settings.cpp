// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <cstdlib>

#include "binding.hpp"

namespace lagometer::cyclonedds {

namespace {

using nlohmann::json;

// The vendor's defaults, from the manual of the 0.10 series ("Configuration guide").
constexpr uint64_t kMaxMessageBytes = 14720;
constexpr uint64_t kFragmentBytes = 1344;
constexpr uint64_t kReceiveBufferBytes = 1048576;
constexpr const char* kSharedMemoryPrefix = "DDS_CYCLONE";

// What a UDP datagram holds, less the headers of RTPS: what is larger would be refused by the kernel, message by
// message.
constexpr uint64_t kDatagramBytes = 65500;
constexpr uint64_t kMostBytes = 1ULL << 30;

#ifdef LAGOMETER_CYCLONEDDS_SHARED_MEMORY
constexpr bool kSharedMemoryBuiltIn = true;
#else
constexpr bool kSharedMemoryBuiltIn = false;
#endif

uint64_t number(const json& value, const std::string& key, uint64_t most) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > most)
    throw Error(LAGOMETER_INVALID,
                "cyclonedds: option " + key + " must be a number of bytes from 1 to " + std::to_string(most));
  return value.get<uint64_t>();
}

bool is_asynchronous(const json& value) {
  if (value == "synchronous") return false;
  if (value == "asynchronous") return true;
  throw Error(LAGOMETER_INVALID, "cyclonedds: option delivery must be synchronous | asynchronous");
}

bool wants_shared_memory(const json& value) {
  if (!value.is_boolean()) throw Error(LAGOMETER_INVALID, "cyclonedds: option shared_memory must be true | false");
  if (value.get<bool>() && !kSharedMemoryBuiltIn)
    throw Error(LAGOMETER_UNSUPPORTED,
                "cyclonedds: this Cyclone DDS was built without shared memory (ENABLE_SHM); leave out shared_memory");
  return value.get<bool>();
}

std::string element(const std::string& name, const std::string& content) {
  return content.empty() ? "" : "<" + name + ">" + content + "</" + name + ">";
}

std::string bytes_element(const std::string& name, const std::optional<uint64_t>& bytes) {
  return bytes ? element(name, std::to_string(*bytes) + "B") : "";
}

}  // namespace

Settings Settings::from(std::string_view profile, std::string_view options, uint32_t domain) {
  Settings settings;
  settings.domain = domain;
  if (profile == "matched") {
    // As large as a datagram may be, so that a middleware is not measured by how often it calls the kernel.
    settings.max_message_bytes = 65500;
    settings.fragment_bytes = 65000;
    settings.socket_receive_buffer_bytes = 4194304;
  } else if (profile != "default") {
    throw Error(LAGOMETER_INVALID, "cyclonedds: profile '" + std::string(profile) + "' must be default | matched");
  }
  const json document = json::parse(options.empty() ? "{}" : options, nullptr, false);
  if (!document.is_object()) throw Error(LAGOMETER_INVALID, "cyclonedds: options must be a JSON object");
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
    shared_memory = wants_shared_memory(value);
  } else if (key == "participant_index" && value.is_string()) {
    participant_index = value.get<std::string>();
  } else {
    throw Error(LAGOMETER_INVALID, "cyclonedds: option '" + key +
                                       "' is not known or not of its type; known: max_message_size, fragment_size, "
                                       "socket_receive_buffer, socket_send_buffer, delivery, shared_memory, "
                                       "participant_index");
  }
}

bool Settings::any() const { return !xml().empty(); }

// iceoryx knows nothing of DDS domains: with one name for all, a reader takes in what is written in the other domains,
// throws it away, and never gives the memory back.
std::string Settings::shared_memory_prefix() const {
  return domain == 0 ? kSharedMemoryPrefix : kSharedMemoryPrefix + ("_" + std::to_string(domain));
}

std::string Settings::xml() const {
  const std::string general =
      bytes_element("MaxMessageSize", max_message_bytes) + bytes_element("FragmentSize", fragment_bytes);
  std::string internal;
  if (asynchronous_delivery) internal += element("SynchronousDeliveryPriorityThreshold", "1");
  if (socket_receive_buffer_bytes)
    internal += "<SocketReceiveBufferSize max=\"" + std::to_string(*socket_receive_buffer_bytes) + "B\"/>";
  if (socket_send_buffer_bytes)
    internal += "<SocketSendBufferSize min=\"default\" max=\"" + std::to_string(*socket_send_buffer_bytes) + "B\"/>";
  std::string memory;
  if (shared_memory) memory += element("Enable", "true");
  if (shared_memory && domain != 0) memory += element("Prefix", shared_memory_prefix());
  const std::string inside = element("General", general) +
                             element("Discovery", element("ParticipantIndex", participant_index.value_or(""))) +
                             element("Internal", internal) + element("SharedMemory", memory);
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
  put("Discovery/ParticipantIndex", participant_index, "none");
  if (asynchronous_delivery) settings["Internal/SynchronousDeliveryPriorityThreshold"] = {{"value", 1}, {"default", 0}};
  if (shared_memory) settings["SharedMemory/Enable"] = {{"value", true}, {"default", false}};
  if (shared_memory && domain != 0)
    settings["SharedMemory/Prefix"] = {{"value", shared_memory_prefix()}, {"default", kSharedMemoryPrefix}};
  json paste = json::array();
  if (any()) paste.push_back({{"file", "cyclonedds.xml, named by CYCLONEDDS_URI"}, {"text", xml()}});
  // The library reads this variable whatever an application does: it belongs to the effective settings.
  if (const char* uri = std::getenv("CYCLONEDDS_URI"); uri != nullptr && *uri != '\0' && !any())
    settings["CYCLONEDDS_URI"] = {{"value", uri}, {"default", ""}};
  // With shared memory each endpoint says for itself whether it uses it.
  const json transport{{"within_process", {"process"}}, {"between_processes", {"udp"}}};
  return {{"settings", settings}, {"paste", paste}, {"transport", transport}};
}

}  // namespace lagometer::cyclonedds
