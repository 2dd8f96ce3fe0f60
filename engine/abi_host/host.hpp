// SPDX-License-Identifier: Apache-2.0
// The host that adapters get: a log on standard error, the clock, names of threads, and the destination of error texts.
// A program that uses it may replace these functions with its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "lagometer/adapter.h"

namespace lagometer::abi_host {

/// How adapters have used the host since the process began.
struct Tally {
  std::atomic<uint64_t> logged{0};
  std::atomic<uint64_t> threads_begun{0};
  std::atomic<uint64_t> threads_ended{0};
};
Tally& tally() noexcept;

/// A host with every function that this header knows; it drops stamps.
lagometer_host make_host() noexcept;

/// Marks this thread as being inside a call or callback while it exists, so that host->fail belongs to that call.
class InCall {
 public:
  InCall() noexcept;
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;
};

/// Forgets, or returns, the reason that the last call on this thread gave to host->fail; "" if it gave no reason.
void forget_reason() noexcept;
const std::string& last_reason() noexcept;

/// The first breakage that an adapter reported outside any call; "" if there was no such report.
std::string broken_reason();

inline lagometer_string to_c(std::string_view text) noexcept { return {text.data(), text.size()}; }
std::string text_of(lagometer_string text);

}  // namespace lagometer::abi_host
