// SPDX-License-Identifier: Apache-2.0
// The options of a context, queried one by one: options that nobody queries are unknown and rejected.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "binding.hpp"

namespace lagometer::brokerless {

class Options {
 public:
  /// Errors: the text is not a JSON object.
  Options(std::string_view adapter, std::string_view text)
      : adapter_(adapter),
        left_(text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text, nullptr, false)) {
    if (!left_.is_object()) throw Error(LAGOMETER_INVALID, adapter_ + ": options are not a JSON object");
  }

  /// One of these words; nothing if not given.
  std::optional<std::string> word(const std::string& key, std::initializer_list<std::string_view> valid) {
    const nlohmann::json given = remove(key);
    if (given.is_null()) return std::nullopt;
    std::string all;
    for (const std::string_view each : valid) {
      if (given == each) return std::string(each);
      all.append(all.empty() ? "" : ", ").append(each);
    }
    throw Error(LAGOMETER_INVALID, adapter_ + ": option '" + key + "' is " + given.dump() + "; valid: " + all);
  }

  std::optional<int> integer(const std::string& key, int minimum, int maximum) {
    const nlohmann::json given = remove(key);
    if (given.is_null()) return std::nullopt;
    if (given.is_number_integer() && given >= minimum && given <= maximum) return given.get<int>();
    throw Error(LAGOMETER_INVALID, adapter_ + ": option '" + key + "' must be an integer from " +
                                       std::to_string(minimum) + " to " + std::to_string(maximum));
  }

  std::optional<bool> boolean(const std::string& key) {
    const nlohmann::json given = remove(key);
    if (given.is_null()) return std::nullopt;
    if (given.is_boolean()) return given.get<bool>();
    throw Error(LAGOMETER_INVALID, adapter_ + ": option '" + key + "' must be true or false");
  }

  /// Errors: there is an option that was not queried.
  void end() const {
    if (left_.empty()) return;
    throw Error(LAGOMETER_INVALID,
                adapter_ + ": option '" + left_.begin().key() + "' is unknown; valid: " + asked_for_);
  }

 private:
  nlohmann::json remove(const std::string& key) {
    asked_for_.append(asked_for_.empty() ? "" : ", ").append(key);
    const auto found = left_.find(key);
    if (found == left_.end()) return nullptr;
    nlohmann::json value = *found;
    left_.erase(found);
    return value;
  }

  std::string adapter_;
  nlohmann::json left_;
  std::string asked_for_;
};

}  // namespace lagometer::brokerless
