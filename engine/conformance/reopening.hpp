// SPDX-License-Identifier: Apache-2.0
// Everything that an adapter has, opened and closed repeatedly while messages flow: what is held before and after.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "objects.hpp"

namespace lagometer::conformance {

struct Reopening {
  std::string runtime_directory;
  std::string options;
  std::string network;
  uint32_t rounds;
  uint32_t dispatch;
  uint32_t depth;       // of keep_last
  int64_t blocking_ns;  // of a writer whose queue nobody empties: it goes on soon
};

/// {"before": what was held when the first rounds were over, "after", "late_callbacks"}. Throws Refusal, or
/// std::runtime_error if nothing came.
nlohmann::json reopen_again_and_again(const Adapter& adapter, const Reopening& wanted);

}  // namespace lagometer::conformance
