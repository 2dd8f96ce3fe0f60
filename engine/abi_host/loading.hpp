// SPDX-License-Identifier: Apache-2.0
// Opens adapters, whatever header they were built with: a table that is shorter than this header's is completed with
// nulls, one that is longer is cut.
#pragma once

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
  uint32_t own_size = 0;          ///< of the table as the adapter has it
  lagometer_adapter_table table;  ///< as this header knows it; functions that the adapter has not are null
};

/// Opens with RTLD_NOW | RTLD_LOCAL, never to be closed, and enters. Throws Unloadable: no library, no symbol, no table
/// for this host, a table that can't be completed.
Loaded load(const std::string& library, const lagometer_host& host);

/// Completes a table of an adapter; `whose` begins the text of what is thrown. Throws Unloadable: it is shorter than
/// the first version's, or of a version of the ABI that this program does not know.
lagometer_adapter_table completed(const lagometer_adapter_table& given, const std::string& whose);

/// The first function that is required and null; null if there is none.
const char* missing_function(const lagometer_adapter_table& table) noexcept;

}  // namespace lagometer::abi_host
