// SPDX-License-Identifier: Apache-2.0
// A waitset for libraries that provide a descriptor for each socket.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "binding.hpp"

#include "poll_set.hpp"

namespace lagometer::brokerless {

/// A reader with the members
///   void join_waitset();                              throws unless it may be attached
///   int descriptor() const;                           becomes readable when there may be a message
///   bool has_data();                                  has one, whatever the descriptor says; if false, ask that
///   static constexpr bool descriptor_tells_messages;  readable means that there is a message
template <typename Context, typename Reader>
class Waitset {
 public:
  explicit Waitset(Context&) {}

  void attach(Reader& reader) {
    reader.join_waitset();
    set_.watch(reader.descriptor());
    readers_.push_back(&reader);
  }

  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
    count = 0;
    for (;;) {
      const bool untaken = std::ranges::any_of(readers_, [](Reader* reader) { return reader->has_data(); });
      // Descriptors are also checked if they may be those of others.
      const bool looks = !untaken || (Reader::descriptor_tells_messages && !places.empty());
      const auto woken = looks ? set_.wait(untaken ? 0 : until_ns) : PollSet::Woken::readable;
      if (woken == PollSet::Woken::timeout && !untaken) return LAGOMETER_TIMEOUT;
      if (woken == PollSet::Woken::readable && !untaken && !Reader::descriptor_tells_messages) continue;
      count = name_ready(readers_, places, [this, place = size_t{0}](Reader* reader) mutable {
        const bool readable = Reader::descriptor_tells_messages && set_.found_readable(place++);
        return readable || reader->has_data();
      });
      return LAGOMETER_OK;
    }
  }

  void trigger() noexcept { set_.trigger(); }

 private:
  PollSet set_;
  std::vector<Reader*> readers_;
};

}  // namespace lagometer::brokerless
