// SPDX-License-Identifier: Apache-2.0
#include "waitset.hpp"

#include "reader.hpp"

namespace lagometer::shm {

Waitset::Waitset(Context& context) : bell_(Segment::make(context.new_path("b"), sizeof(Bell))) {}

void Waitset::attach(Reader& reader) {
  const uint32_t slot = reader.attach(readers_, bell_);
  if (places_.size() <= slot) places_.resize(slot + 1);
  places_[slot] = attached_++;
}

bool Waitset::has_data() noexcept {
  bool found = false;
  for (uint32_t slot = 0; !found && slot < readers_->end(); ++slot) {
    readers_->serve(slot, [&found](const Reader& reader) noexcept { found = reader.has_data(); });
  }
  return found;
}

lagometer_status Waitset::wait(int64_t until_ns) noexcept {
  for (;;) {
    if (triggered_.load(std::memory_order_relaxed) && triggered_.exchange(false)) return LAGOMETER_OK;
    if (has_data()) return LAGOMETER_OK;
    if (until_ns != never_ns && now_ns() >= until_ns) return LAGOMETER_TIMEOUT;
    bell().sleep([this]() noexcept { return triggered_.load(std::memory_order_seq_cst) || has_data(); }, until_ns);
  }
}

lagometer_status Waitset::wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) noexcept {
  count = 0;
  const lagometer_status status = wait(until_ns);
  for (uint32_t slot = 0; status == LAGOMETER_OK && slot < readers_->end(); ++slot) {
    readers_->serve(slot, [&](const Reader& reader) noexcept {
      if (count < places.size() && reader.has_data()) places[count++] = places_[slot];
    });
  }
  return status;
}

void Waitset::trigger() noexcept {
  triggered_.store(true, std::memory_order_seq_cst);
  bell().ring();
}

}  // namespace lagometer::shm
