// SPDX-License-Identifier: Apache-2.0
// What differs between the series of Cyclone DDS: the folder of each adapter implements this.
#pragma once

#include <dds/dds.h>

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace lagometer::cyclonedds {

inline constexpr char adapter_name[] = LAGOMETER_ADAPTER_NAME;

/// What the vendor sets where nothing is asked for (manual of the series, "Configuration guide").
const char* participant_index_default() noexcept;

/// The folder of the library's plugins for DDS Security; empty where the dynamic linker finds them by their names.
/// Throws lagometer::Error if the library has none.
std::string security_plugins();

/// Shared memory through iceoryx.
namespace shared_memory {

/// Whether the library was built with it.
bool is_built_in() noexcept;
/// What turns it on in the configuration: inside the element General, and beside it.
struct Configuration {
  std::string general;
  std::string beside;
};
Configuration configuration(uint32_t domain);
/// Adds to the effective settings what configuration() sets.
void describe(uint32_t domain, nlohmann::json& settings);

/// Whether the messages of this endpoint may go through it: that is up to its quality of service.
bool carries(dds_entity_t endpoint);
/// Whether messages of this writer, of a type of fixed size, lie in shared memory while they are written. After the
/// writer is made.
bool lends(dds_entity_t writer);
/// DDS_RETCODE_ERROR: RouDi's pool has no chunk left. [blocks: never]
dds_return_t lend(dds_entity_t writer, void** sample);
/// Whether this reader, of a type of fixed size, can be given its messages where they lie: dds_take() with null
/// pointers, and dds_return_loan() when they were read.
bool shows_in_place(dds_entity_t reader);

/// A reader's place among those that one process may have, where the library would not survive one more; null where it
/// says so itself. Throws lagometer::Error if none is left. [thread: any]
std::shared_ptr<void> reader_place();

}  // namespace shared_memory
}  // namespace lagometer::cyclonedds
