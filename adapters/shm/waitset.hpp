// SPDX-License-Identifier: Apache-2.0
// One thread sleeps here until one of its readers has data.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "context.hpp"

namespace lagometer::shm {

class Waitset {
 public:
  explicit Waitset(Context& context);
  Waitset(const Waitset&) = delete;
  Waitset& operator=(const Waitset&) = delete;
  ~Waitset() { bell_->unlink(); }

  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns) noexcept;
  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count) noexcept;
  void trigger() noexcept;

 private:
  [[nodiscard]] bool has_data() noexcept;
  Bell& bell() noexcept { return *reinterpret_cast<Bell*>(bell_->data()); }

  // Shared with the readers, which remove themselves and may outlive the waitset.
  std::shared_ptr<Readers> readers_ = std::make_shared<Readers>();
  std::shared_ptr<Segment> bell_;
  std::vector<uint32_t> places_;  // by slot: the reader's index in the order of attach
  uint32_t attached_ = 0;
  std::atomic<bool> triggered_{false};
};

}  // namespace lagometer::shm
