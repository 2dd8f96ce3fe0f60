// SPDX-License-Identifier: Apache-2.0
// What secures a context of ROS 2: the keystore in its form, and variables that are back afterwards.
#include "keystore.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "dds_security.hpp"

namespace {

namespace fs = std::filesystem;
using lagometer::Error;
using lagometer::dds_security::Files;
using lagometer::ros2::Keystore;
using lagometer::ros2::Variables;

class Keystores : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "keystore-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    for (const auto& [name, field] :
         {std::pair{"ca", &Files::identity_ca}, std::pair{"pca", &Files::permissions_ca},
          std::pair{"certificate", &Files::certificate}, std::pair{"key", &Files::private_key},
          std::pair{"governance", &Files::governance}, std::pair{"permissions", &Files::permissions}}) {
      files.*field = (folder / name).string();
      std::ofstream(files.*field) << name;
    }
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string text(const fs::path& path) {
    std::ostringstream read;
    read << std::ifstream(path).rdbuf();
    return read.str();
  }

  fs::path folder;
  Files files;
};

TEST_F(Keystores, HasEachFileUnderTheNameThatRos2Expects) {
  const Keystore keystore(files, folder / "sros2" / "keystore-1");
  const fs::path enclave = folder / "sros2" / "keystore-1" / "enclaves" / "lagometer";
  EXPECT_EQ(keystore.enclave(), enclave);
  EXPECT_EQ(text(enclave / "identity_ca.cert.pem"), "ca");
  EXPECT_EQ(text(enclave / "permissions_ca.cert.pem"), "pca");
  EXPECT_EQ(text(enclave / "cert.pem"), "certificate");
  EXPECT_EQ(text(enclave / "key.pem"), "key");
  EXPECT_EQ(text(enclave / "governance.p7s"), "governance");
  EXPECT_EQ(text(enclave / "permissions.p7s"), "permissions");
  EXPECT_EQ(keystore.variables().at("ROS_SECURITY_KEYSTORE"), (folder / "sros2" / "keystore-1").string());
  EXPECT_EQ(keystore.variables().at("ROS_SECURITY_STRATEGY"), "Enforce");
}

TEST_F(Keystores, NeverMixesTheFilesOfTwoContexts) {
  const Keystore keystore(files, folder / "keystore");
  EXPECT_THROW(Keystore(files, folder / "keystore"), Error);
}

TEST(VariablesOfAProcess, AreBackAfterwards) {
  setenv("LAGOMETER_TEST_SET", "before", 1);
  unsetenv("LAGOMETER_TEST_UNSET");
  {
    const Variables during({{"LAGOMETER_TEST_SET", "a"}, {"LAGOMETER_TEST_UNSET", "b"}});
    EXPECT_STREQ(std::getenv("LAGOMETER_TEST_SET"), "a");
    EXPECT_STREQ(std::getenv("LAGOMETER_TEST_UNSET"), "b");
  }
  EXPECT_STREQ(std::getenv("LAGOMETER_TEST_SET"), "before");
  EXPECT_EQ(std::getenv("LAGOMETER_TEST_UNSET"), nullptr);
  unsetenv("LAGOMETER_TEST_SET");
}

}  // namespace
