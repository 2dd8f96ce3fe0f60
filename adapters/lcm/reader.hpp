// SPDX-License-Identifier: Apache-2.0
// A subscriber: one LCM subscription, whose handler copies each message out of LCM's buffer, like the decoding
// functions that lcm-gen generates.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "context.hpp"

namespace lagometer::lcm {

class Reader final : public Subscriber {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() override;
  void enable();
  /// A waitset's instance serves this reader from now on. Call it before enable.
  void join(std::shared_ptr<Instance> instance);

  /// At most one message: it is delivered before the next is handled.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] std::string describe() const;

  void receive(const lcm_recv_buf_t& buffer) noexcept override;
  [[nodiscard]] bool has_room() const noexcept override;
  /// A message was handled but not taken.
  [[nodiscard]] bool has_data() const noexcept;

 private:
  /// A message between its handler's call and its release. The handling thread fills it, the taking one frees it.
  struct Place {
    enum class State : uint8_t { free, filled, taken };
    std::atomic<State> state{State::free};
    std::vector<uint8_t> payload;
    uint64_t bytes = 0;
    int64_t handler_ns = 0;
    uint32_t handler_cpu = 0;
  };

  [[nodiscard]] uint32_t after(uint32_t index) const noexcept { return index + 1 < place_count_ ? index + 1 : 0; }
  void show(lagometer_sample& sample, Place& place) const noexcept;

  Context& context_;
  brokerless::Endpoint endpoint_;
  std::string channel_;
  std::shared_ptr<Instance> instance_;
  bool subscribed_ = false;
  uint32_t place_count_;
  std::unique_ptr<Place[]> places_;       // a ring
  uint32_t next_filled_ = 0;              // the handling thread's
  uint32_t next_taken_ = 0;               // the taking thread's
  std::atomic<uint64_t> wrong_bytes_{0};  // the size of a message that the type does not allow
};

}  // namespace lagometer::lcm
