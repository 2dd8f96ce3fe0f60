// SPDX-License-Identifier: Apache-2.0
// What secures a context, where ROS 2 looks for it: a keystore of SROS 2 with one enclave.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dds_security.hpp"

namespace lagometer::ros2 {

/// The keystore of one context, in the trial's folder: links to the files that lagometer made for its participant, with
/// the names and in the folder that ROS 2 expects (design.ros2.org, ROS 2 Security Enclaves).
class Keystore {
 public:
  /// folder: does not exist yet. Throws Error(LAGOMETER_FAILED): it can't be written.
  Keystore(const dds_security::Files& files, std::filesystem::path folder);

  /// The arguments with which a context finds its enclave.
  [[nodiscard]] static std::vector<const char*> arguments();
  /// The folder that a context reports as its own if it uses this keystore.
  [[nodiscard]] std::filesystem::path enclave() const;
  /// The variables that make ROS 2 refuse to start without security.
  [[nodiscard]] std::map<std::string, std::string> variables() const;

 private:
  std::filesystem::path folder_;
};

/// Sets variables of this process for as long as it lives. ROS 2 reads them while a context starts; no other thread may
/// read or write the environment meanwhile.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& wanted);
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables();

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace lagometer::ros2
