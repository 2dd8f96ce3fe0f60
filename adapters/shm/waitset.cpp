// SPDX-License-Identifier: Apache-2.0
#include "waitset.hpp"

#include "reader.hpp"

namespace lagometer::shm {

Waitset::Waitset(Context& context) : bell_(Segment::make(context.new_path("b"), sizeof(Bell))) {}

void Waitset::attach(Reader& reader) { reader.attach(readers_, bell_); }

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

void Waitset::trigger() noexcept {
  triggered_.store(true, std::memory_order_seq_cst);
  bell().ring();
}

}  // namespace lagometer::shm
