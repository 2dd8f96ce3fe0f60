// SPDX-License-Identifier: Apache-2.0
#include "keystore.hpp"

#include <array>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace lagometer::ros2 {
namespace {

constexpr const char* kEnclave = "/lagometer";

}  // namespace

Keystore::Keystore(const dds_security::Files& files, std::filesystem::path folder) : folder_(std::move(folder)) {
  const std::array links{std::pair{"identity_ca.cert.pem", &files.identity_ca},
                         std::pair{"permissions_ca.cert.pem", &files.permissions_ca},
                         std::pair{"cert.pem", &files.certificate},
                         std::pair{"key.pem", &files.private_key},
                         std::pair{"governance.p7s", &files.governance},
                         std::pair{"permissions.p7s", &files.permissions}};
  std::error_code failure;
  std::filesystem::create_directories(enclave(), failure);
  for (const auto& [name, target] : links) {
    if (!failure) std::filesystem::create_symlink(*target, enclave() / name, failure);
  }
  if (failure)
    throw Error(LAGOMETER_FAILED, "ros2: the keystore " + folder_.string() + " can't be written: " + failure.message());
}

std::vector<const char*> Keystore::arguments() { return {"lagometer", "--ros-args", "--enclave", kEnclave}; }

std::filesystem::path Keystore::enclave() const {
  return folder_ / "enclaves" / std::filesystem::path(kEnclave).relative_path();
}

std::map<std::string, std::string> Keystore::variables() const {
  return {{"ROS_SECURITY_ENABLE", "true"},
          {"ROS_SECURITY_STRATEGY", "Enforce"},
          {"ROS_SECURITY_KEYSTORE", folder_.string()}};
}

Variables::Variables(const std::map<std::string, std::string>& wanted) {
  for (const auto& [name, value] : wanted) {
    const char* const found = std::getenv(name.c_str());
    before_[name] = found == nullptr ? std::nullopt : std::optional<std::string>(found);
    setenv(name.c_str(), value.c_str(), 1);
  }
}

Variables::~Variables() {
  for (const auto& [name, value] : before_) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
}

}  // namespace lagometer::ros2
