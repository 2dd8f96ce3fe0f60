// SPDX-License-Identifier: Apache-2.0
// What differs between the series of Cyclone DDS; each adapter's folder implements this.
#pragma once

#include <dds/dds.h>

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace lagometer::cyclonedds {

inline constexpr char adapter_name[] = LAGOMETER_ADAPTER_NAME;

/// Whether the series notes when the library serialises and deserialises (layer_notes.hpp).
#ifdef LAGOMETER_CYCLONEDDS_NOTES_SERIALISING
inline constexpr bool notes_serialising = true;
#else
inline constexpr bool notes_serialising = false;
#endif

/// The vendor's default (manual of the series, "Configuration guide").
const char* participant_index_default() noexcept;

/// The folder of the library's DDS Security plugins; empty if the dynamic linker finds them by name. Throws
/// lagometer::Error if the library has no plugins.
std::string security_plugins();

/// Shared memory through iceoryx.
namespace shared_memory {

/// Whether the library was built with it.
bool is_built_in() noexcept;
/// What enables it in the configuration: inside the element General, and next to it.
struct Configuration {
  std::string general;
  std::string beside;
};
Configuration configuration(uint32_t domain);
/// Adds to the effective settings what configuration() sets.
void describe(uint32_t domain, nlohmann::json& settings);

/// Whether this endpoint's messages may use it: that depends on its quality of service.
bool carries(dds_entity_t endpoint);
/// Whether this writer's messages, of a type of fixed size, are in shared memory while they are written. Call it after
/// the writer is created.
bool lends(dds_entity_t writer);
/// DDS_RETCODE_ERROR: RouDi's pool has no free chunk. [blocks: never]
dds_return_t lend(dds_entity_t writer, void** sample);
/// Whether this reader, of a type of fixed size, can get its messages in place: dds_take() with null pointers, and
/// dds_return_loan() after reading.
bool shows_in_place(dds_entity_t reader);

/// One of the reader places that a process may have, if the library would crash on one more; null if it reports that
/// itself. Throws lagometer::Error if no place is left. [thread: any]
std::shared_ptr<void> reader_place();

}  // namespace shared_memory
}  // namespace lagometer::cyclonedds
