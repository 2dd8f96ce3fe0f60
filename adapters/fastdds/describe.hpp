// SPDX-License-Identifier: Apache-2.0
// What the adapter reports about itself and its objects, as JSON.
#pragma once

#include <cstdint>
#include <string>

namespace lagometer::fastdds {

/// {"version", "library", "abilities", "limits"}, found out from the linked library; starts nothing.
std::string probe();

/// {"settings": {key: {"value", "default"}}, "observed": {...}, "paste": [{"file", "text"}]}: what differs from the
/// vendor's default, what was observed to be in force, and the same as an XML profile that Fast DDS reads.
std::string describe(uint32_t kind, const void* object);

}  // namespace lagometer::fastdds
