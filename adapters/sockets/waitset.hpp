// SPDX-License-Identifier: Apache-2.0
// One thread waits here until a socket of one of its readers has something, or a buffer still has.
#pragma once

#include <memory>

#include "context.hpp"

namespace lagometer::sockets {

template <typename Reader>
class Waitset {
 public:
  explicit Waitset(Context&) {}

  void attach(Reader& reader) { reader.attach(set_); }

  lagometer_status wait(int64_t until_ns) noexcept {
    const bool buffered = set_->anything_buffered();
    do {
      bool woken = buffered;
      // With something buffered this only looks for what else there is.
      for (const epoll_event& event : set_->wait(events_, buffered ? 0 : until_ns)) {
        woken = true;
        if (event.data.u64 == EpollSet::triggered) {
          set_->clear_trigger();
        } else {
          set_->serve(event, [](Source& source, uint32_t tag) noexcept { source.readable(tag); });
        }
      }
      if (woken) return LAGOMETER_OK;
    } while (now_ns() < until_ns);
    return LAGOMETER_TIMEOUT;
  }

  void trigger() noexcept { set_->trigger(); }

 private:
  std::shared_ptr<EpollSet> set_ = std::make_shared<EpollSet>();
  Events events_{};
};

}  // namespace lagometer::sockets
