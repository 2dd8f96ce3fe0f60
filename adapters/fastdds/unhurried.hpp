// SPDX-License-Identifier: Apache-2.0
// Lets a thread keep running while it wakes others of its process.
#pragma once

namespace lagometer::fastdds {

/// While it lives, threads started by this one take turns with it instead of preempting it when they wake: Linux does
/// not let a SCHED_BATCH thread preempt. At the end all of them are normal threads again. Does nothing if the caller's
/// policy is not the normal one, or must not be changed.
class Unhurried {
 public:
  Unhurried();
  ~Unhurried();
  Unhurried(const Unhurried&) = delete;
  Unhurried& operator=(const Unhurried&) = delete;

 private:
  bool changed_ = false;
};

}  // namespace lagometer::fastdds
