// SPDX-License-Identifier: Apache-2.0
// This adapter's errors, prefixed with its name.
#pragma once

#include <string>

#include "binding.hpp"
#include "series.hpp"

namespace lagometer::cyclonedds {

inline Error invalid(const std::string& text) { return {LAGOMETER_INVALID, std::string(adapter_name) + ": " + text}; }

inline Error unsupported(const std::string& text) {
  return {LAGOMETER_UNSUPPORTED, std::string(adapter_name) + ": " + text};
}

}  // namespace lagometer::cyclonedds
