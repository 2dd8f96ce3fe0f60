// SPDX-License-Identifier: Apache-2.0
// One call of a service at its server, and what a reader has got: roscpp's callback waits until it is answered.
#pragma once

#include <boost/shared_ptr.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "binding.hpp"
#include "messages.hpp"

namespace lagometer::ros1 {

class Exchange {
 public:
  ServiceBytes request;
  ServiceBytes reply;

  /// Whether it was not answered before.
  bool answer() {
    const std::scoped_lock lock(mutex_);
    return !std::exchange(answering_, true);
  }
  /// The reply is there, or there is none: only the first counts, of which it returns whether this was it. [thread:
  /// any]
  bool end(bool answered) {
    {
      const std::scoped_lock lock(mutex_);
      if (ended_) return false;
      ended_ = true;
      answered_ = answered;
    }
    ends_.notify_all();
    return true;
  }
  /// A request that was given back without an answer has none.
  void released() {
    if (answer()) end(false);
  }
  /// Whether there is a reply.
  bool wait() {
    std::unique_lock lock(mutex_);
    ends_.wait(lock, [this] { return ended_; });
    return answered_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ends_;
  bool answering_ = false;
  bool ended_ = false;
  bool answered_ = false;
};

/// A message that roscpp has handed over.
struct Arrived {
  boost::shared_ptr<const void> message;
  lagometer_region bytes{};
  int64_t receipt_ns = 0;              // wall clock, as roscpp has it
  std::shared_ptr<Exchange> exchange;  // of a request
};

}  // namespace lagometer::ros1
