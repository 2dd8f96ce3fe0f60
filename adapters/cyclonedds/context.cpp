// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <utility>

#include "objects.hpp"

namespace lagometer::cyclonedds {

namespace {

using nlohmann::json;

// The vendor's defaults, from the manual of the 0.10 series ("Configuration guide").
constexpr uint64_t kMaxMessageBytes = 14720;
constexpr uint64_t kFragmentBytes = 1344;
constexpr uint64_t kReceiveBufferBytes = 1048576;

uint64_t number(const json& value, const std::string& key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0)
    throw Error(LAGOMETER_INVALID, "cyclonedds: option " + key + " must be a positive number of bytes");
  return value.get<uint64_t>();
}

}  // namespace

Settings Settings::from(std::string_view profile, std::string_view options) {
  Settings settings;
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
  for (const auto& [key, value] : document.items()) {
    if (key == "max_message_size") {
      settings.max_message_bytes = number(value, key);
    } else if (key == "fragment_size") {
      settings.fragment_bytes = number(value, key);
    } else if (key == "socket_receive_buffer") {
      settings.socket_receive_buffer_bytes = number(value, key);
    } else if (key == "participant_index" && value.is_string()) {
      settings.participant_index = value.get<std::string>();
    } else {
      throw Error(LAGOMETER_INVALID, "cyclonedds: option '" + key +
                                         "' is not known or not of its type; known: max_message_size, fragment_size, "
                                         "socket_receive_buffer, participant_index");
    }
  }
  return settings;
}

bool Settings::any() const {
  return max_message_bytes || fragment_bytes || socket_receive_buffer_bytes || participant_index;
}

std::string Settings::xml() const {
  if (!any()) return "";
  std::string general;
  if (max_message_bytes) general += "<MaxMessageSize>" + std::to_string(*max_message_bytes) + "B</MaxMessageSize>";
  if (fragment_bytes) general += "<FragmentSize>" + std::to_string(*fragment_bytes) + "B</FragmentSize>";
  std::string text = "<CycloneDDS><Domain id=\"any\">";
  if (!general.empty()) text += "<General>" + general + "</General>";
  if (participant_index)
    text += "<Discovery><ParticipantIndex>" + *participant_index + "</ParticipantIndex></Discovery>";
  if (socket_receive_buffer_bytes)
    text +=
        "<Internal><SocketReceiveBufferSize max=\"" + std::to_string(*socket_receive_buffer_bytes) + "B\"/></Internal>";
  return text + "</Domain></CycloneDDS>";
}

json Settings::describe() const {
  json settings = json::object();
  const auto put = [&](const char* key, const auto& value, const auto& usual) {
    if (value) settings[key] = {{"value", *value}, {"default", usual}};
  };
  put("General/MaxMessageSize", max_message_bytes, kMaxMessageBytes);
  put("General/FragmentSize", fragment_bytes, kFragmentBytes);
  put("Internal/SocketReceiveBufferSize[@max]", socket_receive_buffer_bytes, kReceiveBufferBytes);
  put("Discovery/ParticipantIndex", participant_index, "none");
  json paste = json::array();
  if (any()) paste.push_back({{"file", "cyclonedds.xml, named by CYCLONEDDS_URI"}, {"text", xml()}});
  // The library reads this variable whatever an application does: it belongs to the effective settings.
  if (const char* uri = std::getenv("CYCLONEDDS_URI"); uri != nullptr && *uri != '\0' && !any())
    settings["CYCLONEDDS_URI"] = {{"value", uri}, {"default", ""}};
  const json transport{{"within_process", {"process"}}, {"between_processes", {"udp"}}};
  return {{"settings", settings}, {"paste", paste}, {"transport", transport}};
}

void check(dds_return_t status, const std::string& what) {
  if (status < 0) throw Error(LAGOMETER_FAILED, "cyclonedds: " + what + ": " + dds_strretcode(-status));
}

Entity::Entity(dds_entity_t entity, const std::string& what) : entity_(entity) {
  if (entity_ < 0) check(std::exchange(entity_, 0), what);
}
Entity::~Entity() {
  if (entity_ > 0) dds_delete(entity_);
}
Entity::Entity(Entity&& other) noexcept : entity_(std::exchange(other.entity_, 0)) {}
Entity& Entity::operator=(Entity&& other) noexcept {
  std::swap(entity_, other.entity_);
  return *this;
}

Context::Context(const lagometer_context_config& config)
    : settings_(Settings::from(view(config.profile), view(config.options))) {
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "cyclonedds: this adapter sets up no security");
  if (const std::string xml = settings_.xml(); !xml.empty()) {
    const dds_entity_t domain = dds_create_domain(config.domain, xml.c_str());
    // A second participant of the same process finds the domain made, with these same settings.
    if (domain != DDS_RETCODE_PRECONDITION_NOT_MET)
      domain_ = Entity(domain, "making domain " + std::to_string(config.domain) + " with " + xml);
  }
  participant_ = Entity(dds_create_participant(config.domain, nullptr, nullptr),
                        "making a participant in domain " + std::to_string(config.domain));
}

}  // namespace lagometer::cyclonedds
