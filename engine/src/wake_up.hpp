// SPDX-License-Identifier: Apache-2.0
// The machine's floor: how late each CPU wakes a thread that sleeps until an absolute time, without middleware.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace lagometer::engine {

/// Wakes a thread on every CPU that this process may use, all at the same time, once per millisecond. Every intended
/// time counts: a thread that oversleeps is also late for the times it slept through.
///
/// Returns `{policy, period_ns, duration_ns, cores: [{cpu, n, p50_ns, p99_ns, p999_ns, max_ns}], warnings}`; policy is
/// `fifo` if every thread got SCHED_FIFO at `priority`, otherwise `other`. Throws std::runtime_error, std::bad_alloc.
nlohmann::json measure_wake_up(int64_t duration_ns, int priority);

}  // namespace lagometer::engine
