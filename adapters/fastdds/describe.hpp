// SPDX-License-Identifier: Apache-2.0
// What the adapter says of itself and of its objects, as JSON.
#pragma once

#include <cstdint>
#include <string>

namespace lagometer::fastdds {

/// {"version", "library", "abilities", "limits"}, found out of the library that is linked; starts nothing.
std::string probe();

/// {"settings": {key: {"value", "default"}}, "observed": {...}, "paste": [{"file", "text"}]}: what differs from the
/// vendor's default, what was found in force, and the same as an XML profile that Fast DDS reads.
std::string describe(uint32_t kind, const void* object);

}  // namespace lagometer::fastdds
