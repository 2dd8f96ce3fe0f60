// SPDX-License-Identifier: Apache-2.0
// Nanoseconds as Fast DDS wants them.
#pragma once

#include <fastdds/rtps/common/Time_t.h>

#include <cstdint>
#include <limits>

namespace lagometer::fastdds {

/// A duration of 0 ns or more; durations that Fast DDS can't represent become infinite.
inline eprosima::fastrtps::Duration_t to_duration(int64_t span_ns) noexcept {
  constexpr int64_t kNanosecondsPerSecond = 1'000'000'000;
  const int64_t seconds = span_ns / kNanosecondsPerSecond;
  if (seconds >= std::numeric_limits<int32_t>::max()) return eprosima::fastrtps::c_TimeInfinite;
  return {static_cast<int32_t>(seconds), static_cast<uint32_t>(span_ns % kNanosecondsPerSecond)};
}

}  // namespace lagometer::fastdds
