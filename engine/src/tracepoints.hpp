// SPDX-License-Identifier: Apache-2.0
// The tracepoints of the kernel's scheduler: their numbers, and where each field is in a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace lagometer::scheduler {

/// Where a field is in a tracepoint's bytes.
struct Field {
  size_t offset = 0;
  size_t bytes = 0;
};

/// One tracepoint, as described by the file `format` of tracefs.
struct Tracepoint {
  uint16_t number = 0;
  std::map<std::string, Field, std::less<>> fields;
};

/// Reads the text of a file `format`. Throws std::runtime_error if a field is missing or has an implausible position.
Tracepoint parse_format(std::string_view text, const std::vector<std::string>& needed);

/// Where the tracepoints are described: the mounted tracefs, or one mounted only for this process, which needs its own
/// mount namespace. Throws std::runtime_error with the reason and what to do.
std::string tracing_folder();

/// Reads a tracepoint of a group. Throws std::runtime_error.
Tracepoint read_tracepoint(const std::string& folder, const std::string& name, const std::vector<std::string>& needed,
                           const std::string& group = "sched");

}  // namespace lagometer::scheduler
