// SPDX-License-Identifier: Apache-2.0
#include "adapter_host.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lagometer::engine {
namespace {

TEST(Adapter, IsLoadedAndProbed) {
  const Adapter adapter(NULL_ADAPTER);
  EXPECT_EQ(adapter.name(), "null");
  EXPECT_EQ(adapter.table().abi_version, LAGOMETER_ABI_VERSION);
  EXPECT_EQ(adapter.table().size, sizeof(lagometer_adapter_table));
  const auto probed = nlohmann::json::parse(adapter.probe("{}"));
  EXPECT_TRUE(probed.contains("version"));
}

TEST(Adapter, SetsEveryPointerOfItsTable) {
  const Adapter adapter(NULL_ADAPTER);
  const lagometer_adapter_table& table = adapter.table();
  const auto* words = reinterpret_cast<void* const*>(&table.probe);
  const size_t count = (sizeof table - offsetof(lagometer_adapter_table, probe)) / sizeof(void*);
  for (size_t at = 0; at < count; ++at) EXPECT_NE(words[at], nullptr) << "function number " << at;
}

TEST(Check, ThrowsTheAdaptersWordsAndItsStatus) {
  const Adapter adapter(NULL_ADAPTER);
  lagometer_context_config config{};
  config.size = sizeof config;
  config.abi_version = LAGOMETER_ABI_VERSION;
  lagometer_context* context = nullptr;
  check("context_create", [&] { return adapter.table().context_create(&config, &context); });
  adapter.table().context_destroy(context);
  try {
    check("something", [] { return LAGOMETER_INVALID; });
    FAIL() << "a negative status was let through";
  } catch (const AdapterError& error) {
    EXPECT_EQ(std::string(error.what()), "something failed (status -2): the adapter gave no reason");
  }
  EXPECT_NO_THROW(check("something", [] { return LAGOMETER_TIMEOUT; }));
}

TEST(Adapter, TakesNullForNothingToDestroy) {
  const Adapter adapter(NULL_ADAPTER);
  const lagometer_adapter_table& table = adapter.table();
  table.reader_destroy(nullptr);
  table.writer_destroy(nullptr);
  table.type_destroy(nullptr);
  table.node_destroy(nullptr);
  table.waitset_destroy(nullptr);
  table.context_destroy(nullptr);
  SUCCEED();
}

}  // namespace
}  // namespace lagometer::engine
