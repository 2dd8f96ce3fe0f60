// SPDX-License-Identifier: Apache-2.0
#include "adapter_host.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lagometer/executor.h"
#include "lagometer/services.h"
#include "lagometer/stamps.h"
#include "lagometer/timers.h"
#include "loading.hpp"

namespace lagometer::engine {
namespace {

TEST(Adapter, IsLoadedAndProbed) {
  const Adapter adapter(NULL_ADAPTER);
  EXPECT_EQ(adapter.name(), "null");
  EXPECT_EQ(adapter.table().abi_version, LAGOMETER_ABI_VERSION);
  EXPECT_EQ(adapter.table().size, sizeof(lagometer_adapter_table));  // completed
  const auto probed = nlohmann::json::parse(adapter.probe("{}"));
  EXPECT_TRUE(probed.contains("version"));
}

TEST(Adapter, SetsEveryPointerOfItsTable) {
  const Adapter adapter(NULL_ADAPTER);
  const lagometer_adapter_table& table = adapter.table();
  const auto* words = reinterpret_cast<void* const*>(&table.probe);
  const size_t count = (LAGOMETER_ADAPTER_TABLE_SIZE_1_0 - offsetof(lagometer_adapter_table, probe)) / sizeof(void*);
  for (size_t at = 0; at < count; ++at) EXPECT_NE(words[at], nullptr) << "function number " << at;
}

// What stands here never changes: adapters and hosts of the first version have it compiled in.
static_assert(LAGOMETER_HOST_SIZE_1_0 == 64);
static_assert(LAGOMETER_CONTEXT_CONFIG_SIZE_1_0 == 112);
static_assert(LAGOMETER_QOS_SIZE_1_0 == 88);
static_assert(LAGOMETER_TYPE_CONFIG_SIZE_1_0 == 56);
static_assert(LAGOMETER_ENDPOINT_CONFIG_SIZE_1_0 == 72);
static_assert(LAGOMETER_MESSAGE_SIZE_1_0 == 88);
static_assert(LAGOMETER_SAMPLE_SIZE_1_0 == 144);
static_assert(LAGOMETER_MATCHED_SIZE_1_0 == 16);
static_assert(LAGOMETER_COUNTERS_SIZE_1_0 == 56);
static_assert(LAGOMETER_ADAPTER_TABLE_SIZE_1_0 == 264);
static_assert(LAGOMETER_TIMERS_TABLE_SIZE_1_0 == 32);
static_assert(LAGOMETER_EXECUTOR_TABLE_SIZE_1_0 == 16);
static_assert(LAGOMETER_SERVICES_TABLE_SIZE_1_0 == 32);
static_assert(LAGOMETER_STAMPS_TABLE_SIZE_1_0 == 32);

/// A table of the null adapter's, as a header of another age has it: so many bytes, and nonsense behind.
struct OtherTable {
  explicit OtherTable(size_t size) {
    std::fill(std::begin(bytes), std::end(bytes), uint8_t{0xEE});
    const lagometer_adapter_table table = Adapter(NULL_ADAPTER).table();
    std::memcpy(bytes, &table, std::min(size, sizeof table));
    reinterpret_cast<lagometer_adapter_table*>(bytes)->size = static_cast<uint32_t>(size);
  }
  [[nodiscard]] lagometer_adapter_table completed() const {
    return abi_host::completed(*reinterpret_cast<const lagometer_adapter_table*>(bytes), "it");
  }
  alignas(lagometer_adapter_table) uint8_t bytes[sizeof(lagometer_adapter_table) + 64];
};

TEST(Completed, HasNullWhereAnOlderTableEnds) {
  const lagometer_adapter_table table = OtherTable(LAGOMETER_ADAPTER_TABLE_SIZE_1_0).completed();
  EXPECT_EQ(table.size, sizeof table);
  EXPECT_NE(table.extension, nullptr);
  EXPECT_EQ(table.waitset_wait_ready, nullptr);
  EXPECT_EQ(abi_host::missing_function(table), nullptr);
}

TEST(Completed, CutsANewerTable) {
  const lagometer_adapter_table table = OtherTable(sizeof(lagometer_adapter_table) + 64).completed();
  EXPECT_EQ(table.size, sizeof table);
  EXPECT_EQ(abi_host::missing_function(table), nullptr);
}

TEST(Completed, RefusesWhatIsNoTableOfThisAbi) {
  EXPECT_THROW((void)OtherTable(LAGOMETER_ADAPTER_TABLE_SIZE_1_0 - 8).completed(), abi_host::Unloadable);
  for (const uint32_t version : {0U, LAGOMETER_ABI_VERSION + 1}) {
    OtherTable other(sizeof(lagometer_adapter_table));
    reinterpret_cast<lagometer_adapter_table*>(other.bytes)->abi_version = version;
    EXPECT_THROW((void)other.completed(), abi_host::Unloadable);
  }
}

TEST(Completed, NamesTheFunctionThatIsMissing) {
  lagometer_adapter_table table = Adapter(NULL_ADAPTER).table();
  table.take = nullptr;
  EXPECT_STREQ(abi_host::missing_function(table), "take");
}

TEST(Extension, IsCallableInEveryVersionThatThisProgramKnows) {
  const uint32_t least = LAGOMETER_STAMPS_TABLE_SIZE_1_0;
  lagometer_stamps_table table{};
  table.size = least;
  for (uint32_t version = 1; version <= LAGOMETER_ABI_VERSION; ++version) {
    table.abi_version = version;
    EXPECT_TRUE(abi_host::is_callable(table, least));
  }
  table.size = least + 64;  // a newer adapter's
  EXPECT_TRUE(abi_host::is_callable(table, least));
  for (const uint32_t version : {0U, LAGOMETER_ABI_VERSION + 1}) {
    table.abi_version = version;
    EXPECT_FALSE(abi_host::is_callable(table, least));
  }
  table.abi_version = LAGOMETER_ABI_VERSION;
  table.size = least - 8;
  EXPECT_FALSE(abi_host::is_callable(table, least));
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
