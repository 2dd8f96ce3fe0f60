// SPDX-License-Identifier: Apache-2.0
// Who wrote a message that a program took.
#pragma once

#include <cstdint>

#include "records.hpp"

namespace lagometer::probes {

/// Copies a GUID of 16 bytes.
void put_guid(const void* guid, KeyRecord& key) noexcept;

/// Puts the GUID of a writer of Cyclone DDS, of which the reader's messages only say its number in this process. Leaves
/// zeros if the library does not know it any more. caller: an address in the code that takes. Asks the library, which
/// allocates memory, once for each writer of a reader; no lock is held meanwhile.
void put_cyclone_writer(void* caller, int32_t reader, uint64_t number, KeyRecord& key) noexcept;

}  // namespace lagometer::probes
