// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace lagometer::conformance {

namespace {

struct Shared {
  ProgressHeader header;
  std::array<ProgressSlot, kProgressSlots> slots;
};

Shared* shared = nullptr;
std::mutex slots_mutex;
std::bitset<kProgressSlots> slots_taken;

/// This thread's slot, returned when the thread ends. If no slot is left, its calls are not reported.
class OwnSlot {
 public:
  OwnSlot() noexcept {
    if (shared == nullptr) return;
    const std::lock_guard lock(slots_mutex);
    for (size_t index = 0; index < kProgressSlots && slot_ == nullptr; ++index) {
      if (slots_taken[index]) continue;
      slots_taken.set(index);
      slot_ = &shared->slots[index];
    }
  }
  ~OwnSlot() {
    if (slot_ == nullptr) return;
    slot_->under_way.store(0);
    const std::lock_guard lock(slots_mutex);
    slots_taken.reset(static_cast<size_t>(slot_ - shared->slots.data()));
  }
  OwnSlot(const OwnSlot&) = delete;
  OwnSlot& operator=(const OwnSlot&) = delete;
  [[nodiscard]] ProgressSlot* get() const noexcept { return slot_; }

 private:
  ProgressSlot* slot_ = nullptr;
};

thread_local const OwnSlot own_slot;
thread_local const char* call_under_way = nullptr;

void note(const char* name, bool under_way) noexcept {
  ProgressSlot* const slot = own_slot.get();
  if (slot == nullptr) return;
  if (name != nullptr) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const size_t length = std::min(std::strlen(name), slot->name.size() - 1);
    std::memcpy(slot->name.data(), name, length);
    slot->name[length] = '\0';
    slot->begin_ns.store(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
  }
  slot->under_way.store(under_way ? 1 : 0);
}

}  // namespace

void tell_progress() noexcept {
  const char* const text = std::getenv("LAGOMETER_RECORDS_FD");
  if (text == nullptr) return;
  const int descriptor = std::atoi(text);
  if (ftruncate(descriptor, sizeof(Shared)) != 0) return;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory != MAP_FAILED) shared = new (memory) Shared{};
  close(descriptor);
}

void step() noexcept {
  if (shared != nullptr) shared->header.steps.fetch_add(1);
}

void step(uint64_t done, uint64_t total) noexcept {
  if (shared == nullptr) return;
  shared->header.done.store(done);
  shared->header.total.store(total);
  step();
}

void begin_order() noexcept { step(0, 0); }

CallMark::CallMark(const char* name) noexcept : name_(name), around_(call_under_way) {
  if (name_ == nullptr) return;
  call_under_way = name_;
  note(name_, true);
}

CallMark::~CallMark() {
  if (name_ == nullptr) return;
  call_under_way = around_;
  note(around_, around_ != nullptr);
}

}  // namespace lagometer::conformance
