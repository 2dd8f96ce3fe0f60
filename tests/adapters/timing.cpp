// SPDX-License-Identifier: Apache-2.0
// Keeps the nodes' time itself (extension timers/1), by a thread for each timer, which it wakes too early as well: the
// host must bear that.
#include <pthread.h>

#include <limits>

#include "in_process.hpp"
#include "lagometer/timers.h"

namespace {

struct Timing : lagometer::test::Ordinary {
  static constexpr std::string_view name = "timing";
};

constexpr int64_t kEarly_ns = 500'000;

class Timer {
 public:
  Timer(void (*callback)(void* user), void* user) : thread_([this, callback, user] { run(callback, user); }) {
    pthread_setname_np(thread_.native_handle(), "executor");
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void arm(int64_t at_ns) {
    {
      const std::lock_guard lock(mutex_);
      early_ = !early_ && at_ns != std::numeric_limits<int64_t>::max();
      at_ns_ = early_ ? at_ns - kEarly_ns : at_ns;
    }
    changed_.notify_all();
  }

 private:
  void run(void (*callback)(void* user), void* user) {
    std::unique_lock lock(mutex_);
    while (!ended_) {
      changed_.wait_until(lock, lagometer::deadline(at_ns_));
      if (ended_ || lagometer::now_ns() < at_ns_) continue;
      at_ns_ = std::numeric_limits<int64_t>::max();
      lock.unlock();
      callback(user);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t at_ns_ = std::numeric_limits<int64_t>::max();
  bool early_ = false;
  bool ended_ = false;
  std::thread thread_;
};

lagometer_status create(lagometer_node*, void (*callback)(void* user), void* user, lagometer_timer** out) noexcept {
  return lagometer::guarded([&] {
    *out = reinterpret_cast<lagometer_timer*>(std::make_unique<Timer>(callback, user).release());
    return LAGOMETER_OK;
  });
}

lagometer_status arm(lagometer_timer* timer, int64_t at_ns) noexcept {
  reinterpret_cast<Timer*>(timer)->arm(at_ns);
  return LAGOMETER_OK;
}

void destroy(lagometer_timer* timer) noexcept { delete reinterpret_cast<Timer*>(timer); }

struct Traits : lagometer::test::InProcessTraits<Timing> {
  static const void* extension(uint32_t kind, void*, std::string_view name) noexcept {
    static constexpr lagometer_timers_table kTimers{.size = sizeof(lagometer_timers_table),
                                                    .abi_version = LAGOMETER_ABI_VERSION,
                                                    .create = create,
                                                    .arm = arm,
                                                    .destroy = destroy};
    const bool meant = kind == LAGOMETER_OBJECT_NODE && name == LAGOMETER_TIMERS_EXTENSION;
    return meant ? &kTimers : nullptr;
  }
};

}  // namespace

LAGOMETER_EXPORT_ADAPTER(Traits)
