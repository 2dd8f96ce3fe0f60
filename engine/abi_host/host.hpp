// SPDX-License-Identifier: Apache-2.0
// The host that adapters are given: a log on standard error, the clock, names of threads, and where the reasons of
// failures go. What uses it may put functions of its own in their place.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "lagometer/adapter.h"

namespace lagometer::abi_host {

/// What adapters have done with the host since the process began.
struct Tally {
  std::atomic<uint64_t> logged{0};
  std::atomic<uint64_t> threads_begun{0};
  std::atomic<uint64_t> threads_ended{0};
};
Tally& tally() noexcept;

/// A host with every function that this header knows; stamps go nowhere.
lagometer_host make_host() noexcept;

/// Marks this thread as being inside a call or callback while it exists, so that host->fail belongs to that call.
class InCall {
 public:
  InCall() noexcept;
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

/// Forgets, or tells, the reason that the last call on this thread gave to host->fail; "" if it gave none.
void forget_reason() noexcept;
const std::string& last_reason() noexcept;

/// What an adapter first reported as broken outside any call; "" if nothing.
std::string broken_reason();

inline lagometer_string to_c(std::string_view text) noexcept { return {text.data(), text.size()}; }
std::string text_of(lagometer_string text);

}  // namespace lagometer::abi_host
