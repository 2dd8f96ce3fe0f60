// SPDX-License-Identifier: Apache-2.0
// The extension "stamps/1" for adapters written with binding.hpp.
//
// An endpoint that has it declares the layers it stamps and remembers which were requested:
//   static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_...;
//   void ask_for_stamps(uint64_t layers);
// Also for C++17, which the headers of ROS 1 need.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "binding.hpp"
#include "lagometer/stamps.h"

namespace lagometer {

/// A stamp for this layer, taken now.
inline lagometer_stamp stamp_of(uint32_t layer) noexcept {
  const int64_t time_ns = now_ns();
  const int cpu = sched_getcpu();
  return {time_ns, layer, cpu < 0 ? LAGOMETER_CPU_UNKNOWN : static_cast<uint32_t>(cpu)};
}

/// Appends a stamp, unless the list is full.
inline void add_stamp(lagometer_stamp_list& list, const lagometer_stamp& stamp) noexcept {
  if (list.count < LAGOMETER_STAMPS_MAX) list.at[list.count++] = stamp;
}

/// Whether the host's struct has room for stamps.
inline bool has_stamps(const lagometer_message& message) noexcept { return message.size >= sizeof message; }
inline bool has_stamps(const lagometer_sample& sample) noexcept { return sample.size >= sizeof sample; }

/// A writer's number that is the same in all processes, from the 16 bytes that identify it in DDS (FNV-1a); never 0.
template <typename Bytes>
uint64_t id_of_guid(const Bytes& guid) noexcept {
  uint64_t hash = 14695981039346656037ULL;
  for (const uint8_t byte : guid) hash = (hash ^ byte) * 1099511628211ULL;
  return hash == 0 ? 1 : hash;
}

template <typename Endpoint>
const lagometer_stamps_table* stamps_table(uint32_t key) noexcept {
  static const lagometer_stamps_table table = {
      sizeof(lagometer_stamps_table),
      LAGOMETER_ABI_VERSION,
      Endpoint::kStampedLayers,
      key,
      0,
      [](void* endpoint, uint64_t layers) noexcept {
        return guarded([&] {
          if ((layers & ~Endpoint::kStampedLayers) != 0)
            throw Error(LAGOMETER_INVALID, "stamps of a layer that is not offered: ask for those in `layers`");
          static_cast<Endpoint*>(endpoint)->ask_for_stamps(layers);
          return LAGOMETER_OK;
        });
      }};
  return &table;
}

/// What extension() returns for this name; null for any other name.
template <typename Writer, typename Reader>
const void* stamps_extension(uint32_t kind, std::string_view name, uint32_t key) noexcept {
  if (name != LAGOMETER_STAMPS_EXTENSION) return nullptr;
  if (kind == LAGOMETER_OBJECT_WRITER) return stamps_table<Writer>(key);
  return kind == LAGOMETER_OBJECT_READER ? stamps_table<Reader>(key) : nullptr;
}

}  // namespace lagometer
