// SPDX-License-Identifier: Apache-2.0
// What is in force of a library's settings, where it differs from what the vendor ships, and how a program sets it.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lagometer::brokerless {

class Settings {
 public:
  /// `line`: the statement that sets it, in a program of the user's own.
  void put(const std::string& name, const nlohmann::json& value, const nlohmann::json& usual, std::string_view line) {
    if (value == usual) return;
    settings_[name] = {{"value", value}, {"default", usual}};
    if (!line.empty()) lines_.append(line).append("\n");
  }

  /// What describe() gives. `where`: what the statements follow on, e.g. "a C program, after zmq_socket()".
  [[nodiscard]] nlohmann::json describe(std::string_view where) const {
    nlohmann::json paste = nlohmann::json::array();
    if (!lines_.empty()) paste.push_back({{"file", where}, {"text", lines_}});
    return {{"settings", settings_}, {"paste", paste}};
  }

 private:
  nlohmann::json settings_ = nlohmann::json::object();
  std::string lines_;
};

}  // namespace lagometer::brokerless
