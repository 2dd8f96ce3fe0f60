// SPDX-License-Identifier: Apache-2.0
#include "waitset.hpp"

#include <algorithm>

#include "duration.hpp"

namespace lagometer::fastdds {
namespace {

eprosima::fastrtps::Duration_t time_left(int64_t until_ns) noexcept {
  const int64_t now = now_ns();
  return to_duration(until_ns > now ? until_ns - now : 0);
}

}  // namespace

Waitset::Waitset(Context&) {
  waitset_.attach_condition(triggered_);
  active_.reserve(1);
}

void Waitset::attach(Reader& reader) {
  waitset_.attach_condition(reader.vendor_reader().get_statuscondition());
  readers_.push_back(&reader);
  active_.reserve(readers_.size() + 1);
}

// The first take() clears a reader's condition, even if it leaves data behind: hence the check before.
lagometer_status Waitset::wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) {
  count = 0;
  const bool left_over =
      std::any_of(readers_.begin(), readers_.end(), [](const Reader* r) { return r->has_left_over(); });
  const ReturnCode_t code = waitset_.wait(active_, left_over ? eprosima::fastrtps::Duration_t{} : time_left(until_ns));
  if (code == ReturnCode_t::RETCODE_TIMEOUT && !left_over) return LAGOMETER_TIMEOUT;
  if (!(code == ReturnCode_t::RETCODE_OK) && !left_over) {
    throw Error(LAGOMETER_FAILED, "fastdds: waiting failed with return code " + std::to_string(code()));
  }
  if (std::find(active_.begin(), active_.end(), &triggered_) != active_.end()) triggered_.set_trigger_value(false);
  count = name_ready(readers_, places, [](Reader* reader) {
    return reader->has_left_over() || reader->vendor_reader().get_statuscondition().get_trigger_value();
  });
  return LAGOMETER_OK;
}

void Waitset::trigger() { triggered_.set_trigger_value(true); }

}  // namespace lagometer::fastdds
