// SPDX-License-Identifier: Apache-2.0
// Names that ROS 1 and ROS 2 allow.
#pragma once

#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>

namespace lagometer {

/// The name with every character that ROS does not allow written as _xHH. `keep`: allowed in addition to letters,
/// digits and the underscore.
inline std::string graph_name(std::string_view name, char keep) {
  std::string result;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || letter == '_' || letter == keep) {
      result += letter;
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof escaped, "_x%02X", static_cast<unsigned>(byte));
    result += escaped;
  }
  return result;
}

}  // namespace lagometer
