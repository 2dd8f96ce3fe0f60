// SPDX-License-Identifier: Apache-2.0
// A library's effective settings where they differ from the vendor's, and how a program sets them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace lagometer::brokerless {

class Settings {
 public:
  /// `line`: the statement that sets it in a user's own program.
  void put(const std::string& name, const nlohmann::json& value, const nlohmann::json& usual, std::string_view line) {
    if (value == usual) return;
    settings_[name] = {{"value", value}, {"default", usual}};
    if (!line.empty()) lines_.append(line).append("\n");
  }

  /// The result of describe(). `where`: where the statements belong, e.g. "a C program, after zmq_socket()".
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
