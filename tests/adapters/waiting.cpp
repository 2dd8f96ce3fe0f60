// SPDX-License-Identifier: Apache-2.0
// Says how often its readers were asked in vain. With LAGOMETER_FIRST_TABLE its table is one of the first version: a
// wait does not say who is ready, and nonsense stands where later functions would.
#include <cstring>

#include "in_process.hpp"

namespace {

struct Waiting : lagometer::test::Ordinary {
  static constexpr std::string_view name = "waiting";
  static constexpr bool kTellsEmptyTakes = true;
};

using Traits = lagometer::test::InProcessTraits<Waiting>;

}  // namespace

#ifdef LAGOMETER_FIRST_TABLE
extern "C" const lagometer_adapter_table* lagometer_adapter(const lagometer_host* given) noexcept {
  static const lagometer_adapter_table first = [] {
    lagometer_adapter_table table = *lagometer::Binding<Traits>::table();
    table.size = LAGOMETER_ADAPTER_TABLE_SIZE_1_0;
    std::memset(reinterpret_cast<char*>(&table) + table.size, 0xEE, sizeof table - table.size);
    return table;
  }();
  return lagometer::serves(given) ? &first : nullptr;
}
#else
LAGOMETER_EXPORT_ADAPTER(Traits)
#endif
