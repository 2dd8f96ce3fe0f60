// SPDX-License-Identifier: Apache-2.0
// Cyclone DDS 0.10 passes messages to iceoryx itself.
#include "series.hpp"

#include <dds/ddsc/dds_loan_api.h>
#include <dlfcn.h>

#include <filesystem>
#include <system_error>

#include "errors.hpp"

namespace lagometer::cyclonedds {

const char* participant_index_default() noexcept { return "none"; }

// Debian puts them into a folder next to the library, where the dynamic linker does not look.
std::string security_plugins() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&dds_create_participant), &info) == 0) return {};
  std::error_code failed;
  const std::filesystem::path library = std::filesystem::canonical(info.dli_fname, failed).parent_path();
  for (const std::filesystem::path& folder : {library, library / "libddsc0debian"}) {
    if (std::filesystem::exists(folder / "libdds_security_auth.so", failed)) return folder.string();
  }
  throw unsupported("this Cyclone DDS came without its plugins for DDS Security (libdds_security_auth.so in " +
                    library.string() + "): leave out security");
}

namespace shared_memory {

namespace {

constexpr const char* kPrefix = "DDS_CYCLONE";

// iceoryx does not know DDS domains: with one name for all, a reader receives what is written in other domains,
// discards it, and never returns the memory.
std::string prefix_of(uint32_t domain) { return domain == 0 ? kPrefix : kPrefix + ("_" + std::to_string(domain)); }

}  // namespace

bool is_built_in() noexcept {
#ifdef LAGOMETER_CYCLONEDDS_SHARED_MEMORY
  return true;
#else
  return false;
#endif
}

Configuration configuration(uint32_t domain) {
  const std::string prefix = domain == 0 ? "" : "<Prefix>" + prefix_of(domain) + "</Prefix>";
  return {.general = "", .beside = "<SharedMemory><Enable>true</Enable>" + prefix + "</SharedMemory>"};
}

void describe(uint32_t domain, nlohmann::json& settings) {
  settings["SharedMemory/Enable"] = {{"value", true}, {"default", false}};
  if (domain != 0) settings["SharedMemory/Prefix"] = {{"value", prefix_of(domain)}, {"default", kPrefix}};
}

bool carries(dds_entity_t endpoint) { return dds_is_shared_memory_available(endpoint); }

bool lends(dds_entity_t writer) { return dds_is_loan_available(writer); }

dds_return_t lend(dds_entity_t writer, void** sample) { return dds_loan_sample(writer, sample); }

// dds_take() of 0.10 always copies out of shared memory.
bool shows_in_place(dds_entity_t) { return false; }

// This library itself reports when there is one too many.
std::shared_ptr<void> reader_place() { return nullptr; }

}  // namespace shared_memory
}  // namespace lagometer::cyclonedds
