// SPDX-License-Identifier: Apache-2.0
// A waitset for libraries that name a descriptor for each socket.
#pragma once

#include <vector>

#include "poll_set.hpp"

namespace lagometer::brokerless {

/// A reader with the members
///   void join_waitset();                              throws unless it may be attached
///   int descriptor() const;                           becomes readable when there may be a message
///   bool has_data();                                  there is one, whatever the descriptor says; false: ask that
///   static constexpr bool descriptor_tells_messages;  readable means that there is one
template <typename Context, typename Reader>
class Waitset {
 public:
  explicit Waitset(Context&) {}

  void attach(Reader& reader) {
    reader.join_waitset();
    set_.watch(reader.descriptor());
    readers_.push_back(&reader);
  }

  lagometer_status wait(int64_t until_ns) {
    for (;;) {
      for (Reader* reader : readers_) {
        if (reader->has_data()) return LAGOMETER_OK;
      }
      switch (set_.wait(until_ns)) {
        case PollSet::Woken::timeout:
          return LAGOMETER_TIMEOUT;
        case PollSet::Woken::triggered:
          return LAGOMETER_OK;
        case PollSet::Woken::readable:
          if (Reader::descriptor_tells_messages) return LAGOMETER_OK;
      }
    }
  }

  void trigger() noexcept { set_.trigger(); }

 private:
  PollSet set_;
  std::vector<Reader*> readers_;
};

}  // namespace lagometer::brokerless
