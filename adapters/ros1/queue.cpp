// SPDX-License-Identifier: Apache-2.0
#include "queue.hpp"

#include <algorithm>

namespace lagometer::ros1 {

lagometer_status Queue::wait(int64_t until_ns) {
  constexpr int64_t kLongest_ns = int64_t{1} << 40;  // the wait is relative; one of 18 minutes is simply restarted
  boost::mutex::scoped_lock lock(mutex_);
  while (callbacks_.empty() && held.load(std::memory_order_relaxed) == 0 && !triggered_) {
    const int64_t left_ns = until_ns - now_ns();
    if (left_ns <= 0) return LAGOMETER_TIMEOUT;
    condition_.wait_for(lock, boost::chrono::nanoseconds(std::min(left_ns, kLongest_ns)));
  }
  triggered_ = false;
  return LAGOMETER_OK;
}

void Queue::trigger() {
  {
    const boost::mutex::scoped_lock lock(mutex_);
    triggered_ = true;
  }
  condition_.notify_all();
}

}  // namespace lagometer::ros1
