// SPDX-License-Identifier: Apache-2.0
// One service call at its server, and what a reader has received: roscpp's callback waits until it is answered.
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

  /// Returns whether it was not answered before.
  bool answer() {
    const std::scoped_lock lock(mutex_);
    return !std::exchange(answering_, true);
  }
  /// The call has a reply, or will have none. Only the first call counts; returns whether this was the first. [thread:
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
  /// A request that was released without an answer gets no reply.
  void released() {
    if (answer()) end(false);
  }
  /// Waits; returns whether there is a reply.
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

/// A message that roscpp has delivered.
struct Arrived {
  boost::shared_ptr<const void> message;
  lagometer_region bytes{};
  int64_t receipt_ns = 0;              // wall clock, from roscpp
  std::shared_ptr<Exchange> exchange;  // for a request
  const Note* note = nullptr;          // the message's own
};

}  // namespace lagometer::ros1
