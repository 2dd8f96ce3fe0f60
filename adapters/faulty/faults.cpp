// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "binding.hpp"

namespace lagometer::faulty {
namespace {

using nlohmann::json;

constexpr double kBurstSeconds = 0.01;
constexpr double kBurstMin = 2.0;

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: the mixing step of SplitMix64.
uint64_t mixed(uint64_t value) noexcept {
  value += 0x9E3779B97F4A7C15ULL;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31U);
}

[[noreturn]] void refuse(const std::string& key, const std::string& wanted) {
  throw Error(LAGOMETER_INVALID, "faulty: option '" + key + "' must be " + wanted);
}

double number(const std::string& key, const json& value, double max) {
  if (!value.is_number() || value.get<double>() < 0.0 || value.get<double>() > max) {
    refuse(key, "a number from 0 to " + std::to_string(max));
  }
  return value.get<double>();
}

uint64_t whole(const std::string& key, const json& value) {
  if (!value.is_number_integer() || value.get<int64_t>() < 0) refuse(key, "a whole number, at least 0");
  return value.get<uint64_t>();
}

std::string text(const std::string& key, const json& value) {
  if (!value.is_string()) refuse(key, "text");
  return value.get<std::string>();
}

using Setter = std::function<void(const std::string&, const json&)>;

std::map<std::string, Setter> setters(Faults& faults) {
  std::map<std::string, Setter> known{
      {"over", [&](const auto& key, const json& value) { faults.over = text(key, value); }},
      {"library", [&](const auto& key, const json& value) { faults.library = text(key, value); }},
      {"inner", [&](const auto&, const json& value) { faults.inner_options = value; }},
      {"seed", [&](const auto& key, const json& value) { faults.seed = whole(key, value); }},
      {"stream", [&](const auto& key, const json& value) { faults.stream = whole(key, value); }},
      {"copies",
       [&](const auto& key, const json& value) {
         faults.copies = static_cast<uint32_t>(std::min<uint64_t>(whole(key, value), 1'000'000));
       }},
      {"delay_ns",
       [&](const auto& key, const json& value) { faults.delay_ns = static_cast<int64_t>(whole(key, value)); }},
      {"spin_ns",
       [&](const auto& key, const json& value) { faults.spin_ns = static_cast<int64_t>(whole(key, value)); }},
      {"limit_rate_hz", [&](const auto& key, const json& value) { faults.limit_rate_hz = number(key, value, 1e9); }},
      {"limit_burst", [&](const auto& key, const json& value) { faults.limit_burst = number(key, value, 1e9); }},
      {"probes",
       [&](const auto& key, const json& value) {
         if (!value.is_boolean()) refuse(key, "true or false");
         faults.probes = value.get<bool>();
       }},
      {"pretend_transport", [&](const auto& key, const json& value) { faults.pretend_transport = text(key, value); }},
  };
  for (size_t index = 0; index < kFaultNames.size(); ++index) {
    Strike& strike = faults.strikes[index];
    const std::string name = kFaultNames[index];
    known[name] = [&strike](const auto& key, const json& value) { strike.share = number(key, value, 1.0); };
    known[name + "_at"] = [&strike](const auto& key, const json& value) { strike.sequence = whole(key, value); };
  }
  return known;
}

}  // namespace

Faults Faults::parse(std::string_view text) {
  const json options = text.empty() ? json::object() : json::parse(text, nullptr, false);
  if (!options.is_object()) throw Error(LAGOMETER_INVALID, "faulty: options are not a JSON object");
  Faults faults;
  const std::map<std::string, Setter> known = setters(faults);
  for (const auto& [key, value] : options.items()) {
    const auto found = known.find(key);
    if (found == known.end()) throw Error(LAGOMETER_INVALID, "faulty: option '" + key + "' is unknown");
    if (value.is_null()) continue;
    found->second(key, value);
    if (key != "library" && key != "inner") faults.in_force[key] = value;
  }
  if (faults.limit_burst <= 0.0) faults.limit_burst = std::max(kBurstMin, faults.limit_rate_hz * kBurstSeconds);
  return faults;
}

bool Faults::strikes_at(Fault fault, uint32_t message_stream, uint64_t sequence) const noexcept {
  if (!concerns(message_stream)) return false;
  const auto index = static_cast<size_t>(fault);
  const Strike& strike = strikes[index];
  if (strike.sequence && *strike.sequence == sequence) return true;
  if (strike.share <= 0.0) return false;
  const uint64_t drawn = mixed(mixed(mixed(seed) ^ (uint64_t{index + 1} << 32U) ^ message_stream) ^ sequence);
  return static_cast<double>(drawn >> 11U) * 0x1p-53 < strike.share;
}

}  // namespace lagometer::faulty
