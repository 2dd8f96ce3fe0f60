// SPDX-License-Identifier: Apache-2.0
// Memory for messages: aligned to a cache line and touched, so that its first use causes no page fault.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

namespace lagometer::sockets {

inline constexpr uint64_t line_bytes = 64;

class AlignedBuffer {
 public:
  AlignedBuffer() noexcept = default;
  explicit AlignedBuffer(uint64_t bytes)
      : data_(static_cast<uint8_t*>(::operator new[](bytes, std::align_val_t{line_bytes}))), bytes_(bytes) {
    std::memset(data_.get(), 0, bytes);
  }
  [[nodiscard]] uint8_t* data() const noexcept { return data_.get(); }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }

 private:
  struct Delete {
    void operator()(uint8_t* data) const noexcept { ::operator delete[](data, std::align_val_t{line_bytes}); }
  };
  std::unique_ptr<uint8_t[], Delete> data_;
  uint64_t bytes_ = 0;
};

}  // namespace lagometer::sockets
