// SPDX-License-Identifier: Apache-2.0
// One thread waits here until a socket or a buffer of one of its readers has data.
#pragma once

#include <bitset>
#include <memory>
#include <span>

#include "context.hpp"

namespace lagometer::sockets {

template <typename Reader>
class Waitset {
 public:
  explicit Waitset(Context&) {}

  /// Readers get their slots in the order of attach, so a slot is a place.
  void attach(Reader& reader) { reader.attach(set_); }

  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) noexcept {
    count = 0;
    readable_.reset();
    const bool buffered = set_->anything_buffered();
    do {
      bool woken = buffered;
      // If something is buffered, this only checks what else there is.
      for (const epoll_event& event : set_->wait(events_, buffered ? 0 : until_ns)) {
        woken = true;
        if (event.data.u64 == EpollSet::triggered) {
          set_->clear_trigger();
        } else {
          readable_.set(EpollSet::slot_of(event));
          set_->serve(event, [](Source& source, uint32_t tag) noexcept { source.readable(tag); });
        }
      }
      if (!woken) continue;
      if (!places.empty()) {
        set_->serve_all([&](uint32_t slot, const Source& source) noexcept {
          if (count < places.size() && (readable_.test(slot) || source.buffered())) places[count++] = slot;
        });
      }
      return LAGOMETER_OK;
    } while (now_ns() < until_ns);
    return LAGOMETER_TIMEOUT;
  }

  void trigger() noexcept { set_->trigger(); }

 private:
  std::shared_ptr<EpollSet> set_ = std::make_shared<EpollSet>();
  Events events_{};
  std::bitset<EpollSet::sources_max> readable_;  // sources with a socket that the last wait found readable
};

}  // namespace lagometer::sockets
