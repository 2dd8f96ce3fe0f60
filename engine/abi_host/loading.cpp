// SPDX-License-Identifier: Apache-2.0
#include "loading.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>

namespace lagometer::abi_host {

const char* missing_function(const lagometer_adapter_table& table) noexcept {
#define LAGOMETER_FUNCTION(function)     \
  {                                      \
    #function, table.function != nullptr \
  }
  const struct {
    const char* name;
    bool there;
  } required[] = {
      LAGOMETER_FUNCTION(probe),           LAGOMETER_FUNCTION(context_create),  LAGOMETER_FUNCTION(context_enable),
      LAGOMETER_FUNCTION(node_create),     LAGOMETER_FUNCTION(type_create),     LAGOMETER_FUNCTION(writer_create),
      LAGOMETER_FUNCTION(writer_enable),   LAGOMETER_FUNCTION(reader_create),   LAGOMETER_FUNCTION(reader_enable),
      LAGOMETER_FUNCTION(reader_destroy),  LAGOMETER_FUNCTION(writer_destroy),  LAGOMETER_FUNCTION(type_destroy),
      LAGOMETER_FUNCTION(node_destroy),    LAGOMETER_FUNCTION(context_destroy), LAGOMETER_FUNCTION(borrow),
      LAGOMETER_FUNCTION(commit),          LAGOMETER_FUNCTION(discard),         LAGOMETER_FUNCTION(take),
      LAGOMETER_FUNCTION(release),         LAGOMETER_FUNCTION(writer_matched),  LAGOMETER_FUNCTION(reader_matched),
      LAGOMETER_FUNCTION(writer_counters), LAGOMETER_FUNCTION(reader_counters), LAGOMETER_FUNCTION(describe),
      LAGOMETER_FUNCTION(extension)};
#undef LAGOMETER_FUNCTION
  for (const auto& function : required) {
    if (!function.there) return function.name;
  }
  return nullptr;
}

lagometer_adapter_table completed(const lagometer_adapter_table& given, const std::string& whose) {
  if (given.abi_version < 1 || given.abi_version > LAGOMETER_ABI_VERSION)
    throw Unloadable(whose + " has a table of ABI version " + std::to_string(given.abi_version) +
                     ", this program works with 1 to " + std::to_string(LAGOMETER_ABI_VERSION));
  if (given.size < LAGOMETER_ADAPTER_TABLE_SIZE_1_0)
    throw Unloadable(whose + " offers a table of " + std::to_string(given.size) + " bytes, the first version had " +
                     std::to_string(LAGOMETER_ADAPTER_TABLE_SIZE_1_0));
  lagometer_adapter_table table{};
  std::memcpy(&table, &given, std::min<size_t>(given.size, sizeof table));
  table.size = sizeof table;
  return table;
}

Loaded load(const std::string& library, const lagometer_host& host) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) throw Unloadable(std::string("can't open the adapter: ") + dlerror());
  const auto entry = reinterpret_cast<Entry>(dlsym(opened, "lagometer_adapter"));
  if (entry == nullptr) throw Unloadable(library + " is not an adapter: it has no symbol lagometer_adapter");
  const lagometer_adapter_table* const table = entry(&host);
  if (table == nullptr)
    throw Unloadable(library + " can't work with ABI version " + std::to_string(LAGOMETER_ABI_VERSION) +
                     " of this program");
  return {.entry = entry, .own_size = table->size, .table = completed(*table, library)};
}

}  // namespace lagometer::abi_host
