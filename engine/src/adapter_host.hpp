// SPDX-License-Identifier: Apache-2.0
// Adapters as the engine uses them: abi_host/, the host's half of the ABI, loads them; failures become exceptions.
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

/// An adapter could not be loaded, or a call failed; the text comes from the adapter.
class AdapterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An adapter could not be loaded, so no call can have failed yet.
class AdapterMissing : public AdapterError {
 public:
  using AdapterError::AdapterError;
};

/// One library, loaded until the process ends. Copies share it.
class Adapter {
 public:
  /// Opens RTLD_NOW | RTLD_LOCAL. Throws AdapterMissing: file or symbol missing, other ABI, table too short or without
  /// a required function.
  explicit Adapter(const std::string& library);

  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return *table_; }
  [[nodiscard]] std::string name() const;
  /// JSON text. `options` is a JSON object.
  [[nodiscard]] std::string probe(std::string_view options) const;
  [[nodiscard]] std::string describe(uint32_t kind, const void* object) const;

 private:
  std::shared_ptr<const lagometer_adapter_table> table_;  // completed: functions the adapter does not have are null
};

/// Makes a call that returns a status; throws AdapterError with the adapter's own text if the status is negative.
void check(const char* what, const std::function<lagometer_status()>& call);

}  // namespace lagometer::engine
