// SPDX-License-Identifier: Apache-2.0
// Adapters as the engine uses them: loaded by the host's half of the ABI (abi_host/), failures turned into exceptions.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "host.hpp"
#include "lagometer/adapter.h"

namespace lagometer::engine {

using abi_host::InCall;
using abi_host::to_c;

/// An adapter could not be loaded, or a call failed; the text is the adapter's own.
class AdapterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An adapter could not be loaded: there is nothing yet that could have failed.
class AdapterMissing : public AdapterError {
 public:
  using AdapterError::AdapterError;
};

/// One library, loaded for the life of the process. Copies share it.
class Adapter {
 public:
  /// Opens RTLD_NOW | RTLD_LOCAL. Throws AdapterMissing: file missing, no symbol, other ABI, table too small
  /// or without a function that is required.
  explicit Adapter(const std::string& library);

  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return *table_; }
  [[nodiscard]] std::string name() const;
  /// JSON text. `options` is a JSON object.
  [[nodiscard]] std::string probe(std::string_view options) const;
  [[nodiscard]] std::string describe(uint32_t kind, const void* object) const;

 private:
  std::shared_ptr<const lagometer_adapter_table> table_;  // completed: what the adapter has not is null
};

/// Makes a call that returns a status; throws AdapterError with the adapter's own words if that is negative.
void check(const char* what, const std::function<lagometer_status()>& call);

}  // namespace lagometer::engine
