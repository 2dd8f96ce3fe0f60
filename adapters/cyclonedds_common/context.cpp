// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

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

namespace {

using Qos = std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)>;

constexpr const char* kGovernance = "dds.sec.access.governance";
constexpr std::string_view kFile = "file:";

// The plugins of DDS Security, identified by the functions that the library looks up in them.
struct Plugin {
  const char* name;
  const char* library;
  const char* function;
};
constexpr Plugin kPlugins[] = {{"auth", "dds_security_auth", "authentication"},
                               {"access", "dds_security_ac", "access_control"},
                               {"crypto", "dds_security_crypto", "crypto"}};

std::string plugin_path(const Plugin& plugin) {
  const std::string folder = security_plugins();
  return folder.empty() ? plugin.library : folder + "/lib" + plugin.library + ".so";
}

// Whether a plugin is loaded in this process: the library opens it for a secured participant.
bool is_loaded(const Plugin& plugin) {
  const std::string path = plugin_path(plugin);
  const std::string file = path.find('/') == std::string::npos ? "lib" + path + ".so" : path;
  void* const handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

Qos secured(const dds_security::Files& files) {
  Qos qos(dds_create_qos(), dds_delete_qos);
  const auto set = [&](const std::string& name, const std::string& value) {
    dds_qset_prop(qos.get(), ("dds.sec." + name).c_str(), value.c_str());
  };
  for (const Plugin& plugin : kPlugins) {
    const std::string prefix = std::string(plugin.name) + ".library.";
    set(prefix + "path", plugin_path(plugin));
    set(prefix + "init", std::string("init_") + plugin.function);
    set(prefix + "finalize", std::string("finalize_") + plugin.function);
  }
  const auto set_file = [&](const char* name, const std::string& path) { set(name, std::string(kFile) + path); };
  set_file("auth.identity_ca", files.identity_ca);
  set_file("auth.identity_certificate", files.certificate);
  set_file("auth.private_key", files.private_key);
  set_file("access.permissions_ca", files.permissions_ca);
  set_file("access.governance", files.governance);
  set_file("access.permissions", files.permissions);
  return qos;
}

}  // namespace

Context::Context(const lagometer_context_config& config)
    : settings_(Settings::from(view(config.profile), view(config.options), config.domain, view(config.network))) {
  const std::optional<dds_security::Files> security = dds_security::parse(config.security, adapter_name);
  if (security && settings_.in_shared_memory)
    throw unsupported("messages in shared memory are neither signed nor encrypted: leave out shared_memory");
  if (settings_.in_shared_memory) roudi::require(std::string(adapter_name) + " (option shared_memory)");
  if (const std::string xml = settings_.xml(); !xml.empty()) {
    const dds_entity_t domain = dds_create_domain(config.domain, xml.c_str());
    // A second participant of the same process finds the domain already created, with the same settings.
    if (domain != DDS_RETCODE_PRECONDITION_NOT_MET)
      domain_ = Entity(domain, "making domain " + std::to_string(config.domain) + " with " + xml);
  }
  const Qos qos = security ? secured(*security) : Qos(nullptr, dds_delete_qos);
  participant_ = Entity(dds_create_participant(config.domain, qos.get(), nullptr),
                        "making a participant in domain " + std::to_string(config.domain) +
                            (security ? ", secured with " + security->certificate : ""));
}

// The library has checked the governance that the participant names, and rejects one that it can't apply.
std::string Context::security() const {
  const Qos qos(dds_create_qos(), dds_delete_qos);
  check(dds_get_qos(participant_.get(), qos.get()), "reading the participant's quality of service back");
  char* value = nullptr;
  if (!dds_qget_prop(qos.get(), kGovernance, &value) || value == nullptr) return "none";
  const std::string governance = std::string(value).substr(kFile.size());
  dds_free(value);
  for (const Plugin& plugin : kPlugins) {
    if (!is_loaded(plugin)) return std::string("none: ") + plugin.library + " is not loaded";
  }
  return dds_security::protection_in(governance);
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
  if (const std::string kind = security(); kind != "none")
    result["settings"]["security"] = {{"value", kind}, {"default", "none"}};
  return result;
}

}  // namespace lagometer::cyclonedds
