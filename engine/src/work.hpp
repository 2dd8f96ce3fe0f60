// SPDX-License-Identifier: Apache-2.0
// How long a node works on a message: always the same, random from a distribution, or from a list.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "plan_bounds.hpp"
#include "random.hpp"

namespace lagometer::engine {

enum class WorkKind { constant, normal, lognormal, recorded };

struct WorkPlan {
  WorkKind kind = WorkKind::constant;
  int64_t spread_ns = 0;  ///< normal: standard deviation
  double sigma = 0.0;     ///< lognormal: standard deviation of the logarithm
  uint64_t seed = 0;
  std::shared_ptr<const std::vector<int64_t>> times_ns = nullptr;  ///< recorded: repeated; not empty
};

/// Draws times of work. Neither allocates nor locks.
class Work {
 public:
  static constexpr auto kMost_ns = static_cast<double>(plan_bounds::Rule::work_ns.high);

  /// `work_ns`: the constant, the mean of the normal distribution, the median of the lognormal one.
  Work(const WorkPlan& plan, int64_t work_ns) noexcept : plan_(plan), work_ns_(work_ns), random_(plan.seed) {}

  int64_t next_ns() noexcept {
    const auto centre = static_cast<double>(work_ns_);
    switch (plan_.kind) {
      case WorkKind::constant:
        break;
      case WorkKind::normal:
        for (;;) {  // truncated: negative times are drawn again, on average at most once
          const double drawn = centre + static_cast<double>(plan_.spread_ns) * random_.normal();
          if (drawn >= 0.0) return std::llround(std::min(drawn, kMost_ns));
        }
      case WorkKind::lognormal:
        return std::llround(std::min(centre * std::exp(plan_.sigma * random_.normal()), kMost_ns));
      case WorkKind::recorded:
        return (*plan_.times_ns)[next_++ % plan_.times_ns->size()];
    }
    return work_ns_;
  }

 private:
  WorkPlan plan_;
  int64_t work_ns_;
  Random random_;
  size_t next_ = 0;
};

}  // namespace lagometer::engine
