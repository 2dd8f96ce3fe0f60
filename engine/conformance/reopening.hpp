// SPDX-License-Identifier: Apache-2.0
// Opens and closes all objects of an adapter repeatedly while messages flow, and compares the resources held before and
// after.
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
  uint32_t depth;       // for keep_last
  int64_t blocking_ns;  // for a writer whose queue nobody empties: short, so that it goes on soon
};

/// {"before": resources held after the first rounds, "after", "late_callbacks"}. Throws Refusal, or std::runtime_error
/// if nothing arrived.
nlohmann::json reopen_again_and_again(const Adapter& adapter, const Reopening& wanted);

}  // namespace lagometer::conformance
