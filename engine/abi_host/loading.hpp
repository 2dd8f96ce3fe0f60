// SPDX-License-Identifier: Apache-2.0
// Opens adapters, whatever header they were built with: a table shorter than this header's is completed with nulls, a
// longer one is cut.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "lagometer/adapter.h"

namespace lagometer::abi_host {

/// A library can't be used as an adapter; the text says why.
class Unloadable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Entry = const lagometer_adapter_table* (*)(const lagometer_host*);

struct Loaded {
  Entry entry = nullptr;
  uint32_t own_size = 0;          ///< of the table in the adapter
  lagometer_adapter_table table;  ///< as this header knows it; functions the adapter does not have are null
};

/// Opens the library with RTLD_NOW | RTLD_LOCAL, never closes it, and calls its entry. Throws Unloadable: no library,
/// no symbol, no table for this host, a table that can't be completed.
Loaded load(const std::string& library, const lagometer_host& host);

/// Completes an adapter's table; `whose` starts the text of the exception. Throws Unloadable: it is shorter than the
/// first version's, or has an ABI version that this program does not know.
lagometer_adapter_table completed(const lagometer_adapter_table& given, const std::string& whose);

/// The first required function that is null; null if all are set.
const char* missing_function(const lagometer_adapter_table& table) noexcept;

/// Whether this program can call the functions of an extension's table: all of the first version are there,
/// `least_size` bytes, and it has an ABI version that this program knows.
template <typename Table>
[[nodiscard]] constexpr bool is_callable(const Table& extension, size_t least_size) noexcept {
  return extension.size >= least_size && extension.abi_version >= 1 && extension.abi_version <= LAGOMETER_ABI_VERSION;
}

}  // namespace lagometer::abi_host
