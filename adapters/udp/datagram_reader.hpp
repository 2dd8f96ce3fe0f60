// SPDX-License-Identifier: Apache-2.0
// A subscriber on UDP: one socket, one datagram per message.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "aligned_buffer.hpp"
#include "context.hpp"

namespace lagometer::sockets {

class DatagramReader final : public Source {
 public:
  DatagramReader(Node& node, const lagometer_endpoint_config& config);
  DatagramReader(const DatagramReader&) = delete;
  DatagramReader& operator=(const DatagramReader&) = delete;
  ~DatagramReader() override;
  void enable();
  /// A waitset serves this reader from now on. Call it before enable.
  void attach(std::shared_ptr<EpollSet> waitset);

  /// At most one message: it is delivered before the next system call.
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const noexcept;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] std::string describe() const;

  void readable(uint32_t tag) noexcept override;
  void deliver(int64_t woken_ns, uint32_t cpu) noexcept override;
  [[nodiscard]] bool buffered() const noexcept override { return false; }

 private:
  static constexpr uint32_t buffers = 16;  // messages that may be taken and not released

  [[nodiscard]] uint8_t* buffer(uint32_t index) const noexcept { return memory_.data() + index * buffer_bytes_; }
  [[nodiscard]] bool find_free_buffer() noexcept;

  Context& context_;
  floor::Endpoint endpoint_;
  uint64_t buffer_bytes_;
  AlignedBuffer memory_;
  std::array<bool, buffers> held_{};
  uint32_t buffer_index_ = 0;
  Descriptor socket_;
  std::atomic<bool> enabled_{false};  // publishes what enable() wrote to the context's thread
  BufferSizes default_sizes_;
  std::shared_ptr<EpollSet> set_;  // the waitset's or the context's; none when polling
  uint32_t slot_ = 0;
  Announced announcement_;
  // Only the context's thread uses the rest.
  bool news_ = false;
  bool listening_ = false;
  bool first_since_woken_ = false;
  int64_t woken_ns_ = 0;
  uint32_t woken_cpu_ = 0;
};

}  // namespace lagometer::sockets
