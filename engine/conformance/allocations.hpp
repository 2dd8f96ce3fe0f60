// SPDX-License-Identifier: Apache-2.0
// Counts the allocations that a library's own code asks for: calls of malloc and operator new from within its text.
#pragma once

#include <cstdint>
#include <string>

namespace lagometer::conformance {

/// Whether this program can count: not in a build with sanitizers, which bring a malloc of their own.
bool allocations_can_be_counted() noexcept;

/// From now on, of the library with this path. Throws std::runtime_error if it is not loaded.
void count_allocations_of(const std::string& library);

/// Ends the counting and gives how many there were, in all threads.
uint64_t allocations_counted() noexcept;

}  // namespace lagometer::conformance
