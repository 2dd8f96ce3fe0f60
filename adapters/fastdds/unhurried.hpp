// SPDX-License-Identifier: Apache-2.0
// Lets a thread run on while it wakes others of its process.
#pragma once

namespace lagometer::fastdds {

/// While it lives, threads that are born to this one take turns with it instead of preempting it as they wake: Linux
/// does not let a thread of SCHED_BATCH preempt. In the end all of them are ordinary threads again. Does nothing where
/// the caller has another policy than the ordinary one, or may not change it.
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
