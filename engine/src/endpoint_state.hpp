// SPDX-License-Identifier: Apache-2.0
// What an endpoint needs for every message. It is small enough for the head of the page that its records go to, so that
// neither it nor the records cost an extra memory access (docs/methodology/stamps.md).
#pragma once

#include <cstdint>

#include "clock.hpp"
#include "lagometer/adapter.h"

namespace lagometer::engine {

/// State of a writer.
struct SendState {
  const lagometer_adapter_table* table = nullptr;
  lagometer_writer* writer = nullptr;
  uint64_t next_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t sent = 0;
  uint32_t origin = 0;
  CpuSource cpu_source = CpuSource::kernel;
};

/// State of a reader.
struct ReceiveState {
  const lagometer_adapter_table* table = nullptr;
  lagometer_reader* reader = nullptr;
  uint64_t received = 0;
  uint64_t byte_sum = 0;
  CpuSource cpu_source = CpuSource::kernel;
};

/// A list of causes has no state.
struct NoState {};

}  // namespace lagometer::engine
