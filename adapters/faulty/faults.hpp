// SPDX-License-Identifier: Apache-2.0
// Which fault affects which message. The decision only depends on the seed, the fault, the stream and the message's
// sequence, never on time or threads. So the same options damage the same messages on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lagometer::faulty {

enum class Fault : uint8_t { drop, duplicate, reorder, delay, corrupt, hang, crash, spin, stray, key };
inline constexpr std::array<const char*, 10> kFaultNames{"drop", "duplicate", "reorder", "delay", "corrupt",
                                                         "hang", "crash",     "spin",    "stray", "key"};

/// A share of the messages, and one position; either may be off.
struct Strike {
  double share = 0.0;
  std::optional<uint64_t> sequence;
};

/// The options of one context; adapter.json describes each.
struct Faults {
  std::string over = "shm";
  std::string library;
  nlohmann::json inner_options = nlohmann::json::object();
  nlohmann::json in_force = nlohmann::json::object();  // the given faults, for describe()
  uint64_t seed = 1;
  std::optional<uint64_t> stream;
  std::array<Strike, kFaultNames.size()> strikes;
  uint32_t copies = 1;
  int64_t delay_ns = 10'000'000;
  int64_t spin_ns = 1'000;
  double limit_rate_hz = 0.0;  // 0: no limit
  double limit_burst = 0.0;    // messages that may arrive at once
  bool probes = false;
  std::string pretend_transport;

  /// Reads the options' JSON. Throws Error(LAGOMETER_INVALID) that names the key.
  static Faults parse(std::string_view text);

  /// Whether this fault affects this message.
  [[nodiscard]] bool strikes_at(Fault fault, uint32_t message_stream, uint64_t sequence) const noexcept;
  [[nodiscard]] bool concerns(uint32_t message_stream) const noexcept { return !stream || *stream == message_stream; }
};

}  // namespace lagometer::faulty
