// SPDX-License-Identifier: Apache-2.0
// What identifies a writer in all processes.
#pragma once

#include <fastdds/rtps/common/Guid.h>
#include <algorithm>
#include <array>

#include "layer_stamps.hpp"

namespace lagometer::fastdds {

inline uint64_t writer_id(const eprosima::fastrtps::rtps::GUID_t& guid) noexcept {
  std::array<uint8_t, 16> bytes;
  const auto behind = std::copy_n(guid.guidPrefix.value, 12, bytes.begin());
  std::copy_n(guid.entityId.value, 4, behind);
  return id_of_guid(bytes);
}

}  // namespace lagometer::fastdds
