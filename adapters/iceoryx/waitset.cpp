// SPDX-License-Identifier: Apache-2.0
#include "waitset.hpp"

#include <algorithm>
#include <limits>

namespace lagometer::iceoryx {

Waitset::Waitset(Context& /*unused*/) {
  if (waitset_.attachEvent(trigger_).has_error())
    throw Error(LAGOMETER_FAILED, "iceoryx: a wait set refused the trigger that ends its waiting");
}

void Waitset::attach(Reader& reader) {
  // enable() creates a reader's subscriber, so it is attached when the first wait needs it.
  pending_.push_back(&reader);
}

void Waitset::attach_pending() {
  for (const Reader* reader : pending_) {
    if (reader->service() != nullptr) {
      if (reader->service()->join(waitset_)) continue;
      throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: service '" + reader->endpoint().topic +
                                             "' is waited for before enable, or is one more than a wait set holds");
    }
    if (reader->subscriber() == nullptr)
      throw Error(LAGOMETER_INVALID, "iceoryx: waiting for topic '" + reader->endpoint().topic + "' before enable");
    if (waitset_.attachState(*reader->subscriber(), iox::popo::SubscriberState::HAS_DATA).has_error())
      throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: a wait set holds at most " +
                                             std::to_string(waitset_.capacity() - 1) + " subscribers, and topic '" +
                                             reader->endpoint().topic + "' is one more");
  }
  pending_.clear();
}

lagometer_status Waitset::wait(int64_t until_ns) {
  attach_pending();
  if (until_ns == std::numeric_limits<int64_t>::max()) {
    static_cast<void>(waitset_.wait());
    return LAGOMETER_OK;
  }
  // The wait is relative here, and uses the wall clock inside iceoryx; if it ends early, it is restarted.
  constexpr int64_t kLongest_ns = int64_t{1} << 40;
  for (int64_t now = now_ns();; now = now_ns()) {
    const auto left_ns = static_cast<uint64_t>(std::clamp<int64_t>(until_ns - now, 0, kLongest_ns));
    if (!waitset_.timedWait(iox::units::Duration::fromNanoseconds(left_ns)).empty()) return LAGOMETER_OK;
    if (now_ns() >= until_ns) return LAGOMETER_TIMEOUT;
  }
}

}  // namespace lagometer::iceoryx
