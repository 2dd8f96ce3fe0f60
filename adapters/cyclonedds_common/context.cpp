// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "errors.hpp"
#include "objects.hpp"
#include "roudi.hpp"
#include "series.hpp"

namespace lagometer::cyclonedds {

void check(dds_return_t status, const std::string& what) {
  if (status < 0)
    throw Error(LAGOMETER_FAILED, std::string(adapter_name) + ": " + what + ": " + dds_strretcode(-status));
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
    : settings_(Settings::from(view(config.profile), view(config.options), config.domain, view(config.network))) {
  if (config.security.size != 0) throw unsupported("this adapter sets up no security");
  if (settings_.in_shared_memory) roudi::require(std::string(adapter_name) + " (option shared_memory)");
  if (const std::string xml = settings_.xml(); !xml.empty()) {
    const dds_entity_t domain = dds_create_domain(config.domain, xml.c_str());
    // A second participant of the same process finds the domain made, with these same settings.
    if (domain != DDS_RETCODE_PRECONDITION_NOT_MET)
      domain_ = Entity(domain, "making domain " + std::to_string(config.domain) + " with " + xml);
  }
  participant_ = Entity(dds_create_participant(config.domain, nullptr, nullptr),
                        "making a participant in domain " + std::to_string(config.domain));
}

nlohmann::json Context::describe() const {
  nlohmann::json result = settings_.describe();
  const auto put = [&](const char* key, int option, const std::optional<uint64_t>& asked) {
    if (!asked) return;
    if (const auto bytes = sockets_.closest_buffer(option, *asked))
      result["settings"][key] = {{"value", *bytes}, {"default", nullptr}};
  };
  put("SO_RCVBUF", SO_RCVBUF, settings_.socket_receive_buffer_bytes);
  put("SO_SNDBUF", SO_SNDBUF, settings_.socket_send_buffer_bytes);
  return result;
}

}  // namespace lagometer::cyclonedds
