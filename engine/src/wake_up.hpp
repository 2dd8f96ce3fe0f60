// SPDX-License-Identifier: Apache-2.0
// The machine's floor: how late each CPU wakes a thread that sleeps until an absolute time, without any middleware.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace lagometer::engine {

/// Wakes a thread on every CPU that this process may use, all at the same time, once in a millisecond. Every intended
/// time counts: a thread that overslept is late for those it slept through, too.
///
/// Returns `{policy, period_ns, duration_ns, cores: [{cpu, n, p50_ns, p99_ns, p999_ns, max_ns}], warnings}`; policy is
/// `fifo` if every thread got SCHED_FIFO at `priority`, else `other`. Throws std::runtime_error, std::bad_alloc.
nlohmann::json measure_wake_up(int64_t duration_ns, int priority);

}  // namespace lagometer::engine
