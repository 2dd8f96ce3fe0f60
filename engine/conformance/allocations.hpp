// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of a library's own code: calls of malloc and operator new from within its text.
#pragma once

#include <cstdint>
#include <string>

namespace lagometer::conformance {

/// Whether this program can count: not in a build with sanitizers, which have their own malloc.
bool allocations_can_be_counted() noexcept;

/// Starts counting for the library with this path. Throws std::runtime_error if it is not loaded.
void count_allocations_of(const std::string& library);

/// Stops counting and returns the number of allocations in all threads.
uint64_t allocations_counted() noexcept;

}  // namespace lagometer::conformance
