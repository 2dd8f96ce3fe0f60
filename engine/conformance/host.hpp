// SPDX-License-Identifier: Apache-2.0
// The host that adapters under test are given: it counts what they ask of it and keeps the reasons that they give.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "lagometer/adapter.h"
#include "progress.hpp"

namespace lagometer::conformance {

/// What adapters have done with the host since the process began.
struct HostTally {
  std::atomic<uint64_t> logged{0};
  std::atomic<uint64_t> threads_begun{0};
  std::atomic<uint64_t> threads_ended{0};
};

HostTally& host_tally() noexcept;

/// The host, as this program was compiled. Valid for the life of the process.
const lagometer_host& host() noexcept;

/// Marks the thread as being inside a call of an adapter, so that host->fail belongs to that call; `name` is told to
/// whoever waits for us, null (in a callback) is not.
class InCall {
 public:
  explicit InCall(const char* name) noexcept;
  ~InCall();
  InCall(const InCall&) = delete;
  InCall& operator=(const InCall&) = delete;

 private:
  CallMark mark_;
};

/// Forgets, or tells, the reason that the last call on this thread gave to host->fail; "" if it gave none.
void forget_reason() noexcept;
const std::string& last_reason() noexcept;

/// What an adapter reported as broken outside any call; "" if nothing.
std::string broken_reason();

int64_t now_ns() noexcept;

}  // namespace lagometer::conformance
