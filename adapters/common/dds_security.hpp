// SPDX-License-Identifier: Apache-2.0
// A participant's security settings (OMG DDS Security 1.1, built-in plugins): files that lagometer created for the
// trial.
#pragma once

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "binding.hpp"

namespace lagometer::dds_security {

/// The absolute paths of one participant's files.
struct Files {
  std::string kind;  ///< "sign" or "encrypt", as in the governance
  std::string identity_ca, permissions_ca, certificate, private_key, governance, permissions;
};

/// Reads `security` of a context; nothing if it is empty. `adapter` names the caller in errors. Throws
/// Error(LAGOMETER_INVALID).
inline std::optional<Files> parse(lagometer_string text, std::string_view adapter) {
  if (text.size == 0) return std::nullopt;
  const auto invalid = [&](const std::string& what) {
    return Error(LAGOMETER_INVALID, std::string(adapter) + ": security " + what);
  };
  const nlohmann::json given = nlohmann::json::parse(view(text), nullptr, false);
  if (!given.is_object()) throw invalid("must be a JSON object");
  Files files;
  const std::array keys{std::pair{"kind", &Files::kind},
                        std::pair{"identity_ca", &Files::identity_ca},
                        std::pair{"permissions_ca", &Files::permissions_ca},
                        std::pair{"certificate", &Files::certificate},
                        std::pair{"private_key", &Files::private_key},
                        std::pair{"governance", &Files::governance},
                        std::pair{"permissions", &Files::permissions}};
  for (const auto& [key, field] : keys) {
    const auto found = given.find(key);
    if (found == given.end() || !found->is_string() || found->get<std::string>().empty())
      throw invalid(std::string("must have a text '") + key + "'");
    files.*field = found->get<std::string>();
  }
  if (given.size() != keys.size()) throw invalid("has a key that is not known");
  if (files.kind != "sign" && files.kind != "encrypt")
    throw invalid("kind '" + files.kind + "' must be sign | encrypt");
  return files;
}

/// How the governance file at this path protects topic data: "none", "sign", "encrypt"; "" if it does not say.
inline std::string protection_in(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string governance = text.str();
  constexpr std::string_view kBegin = "<data_protection_kind>";
  const size_t begin = governance.find(kBegin);
  if (begin == std::string::npos) return {};
  const size_t word = begin + kBegin.size();
  std::string kind = governance.substr(word, governance.find('<', word) - word);
  for (char& letter : kind) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  return kind;
}

}  // namespace lagometer::dds_security
