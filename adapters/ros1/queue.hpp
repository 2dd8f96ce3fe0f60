// SPDX-License-Identifier: Apache-2.0
// roscpp's callback queue, on which a thread can also wait without calling anything. So a node's thread is stamped when
// it wakes, and not only after roscpp has deserialised a message on it.
#pragma once

#include <ros/callback_queue.h>

#include <atomic>
#include <cstdint>

#include "binding.hpp"

namespace lagometer::ros1 {

class Queue : public ros::CallbackQueue {
 public:
  /// Waits until a callback is queued, a reader holds a message, trigger() was called, or host time `until_ns`
  /// (TIMEOUT). Waits like callOne(timeout) and callAvailable(timeout), on the same condition.
  lagometer_status wait(int64_t until_ns);
  /// Ends one wait, the current or the next. [thread: any]
  void trigger();

  /// Messages that callbacks have passed to their readers and nobody has taken yet.
  std::atomic<int64_t> held{0};

 private:
  bool triggered_ = false;  // guarded by roscpp's mutex_
};

}  // namespace lagometer::ros1
