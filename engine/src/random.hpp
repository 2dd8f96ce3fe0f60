// SPDX-License-Identifier: Apache-2.0
// Random numbers for the hot loop: one word of state, no allocation; a seed gives the same sequence on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace lagometer::engine {

/// SplitMix64 (Steele, Lea and Flood 2014): passes the usual test batteries, and any seed is as good as another.
class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}

  uint64_t bits() noexcept {
    state_ += 0x9E37'79B9'7F4A'7C15;
    uint64_t word = state_;
    word = (word ^ (word >> 30U)) * 0xBF58'476D'1CE4'E5B9;
    word = (word ^ (word >> 27U)) * 0x94D0'49BB'1331'11EB;
    return word ^ (word >> 31U);
  }
  /// In (0, 1], so its logarithm is finite.
  double uniform() noexcept { return (static_cast<double>(bits() >> 11U) + 1.0) * 0x1p-53; }
  /// Mean 1.
  double exponential() noexcept { return -std::log(uniform()); }
  /// Mean 0, standard deviation 1 (Box and Muller 1958; the second number of each pair is not kept).
  double normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace lagometer::engine
