// SPDX-License-Identifier: Apache-2.0
// Parses RTPS datagrams (OMG DDSI-RTPS 2.5, chapters 9.4 and 9.6). The bytes come from outside: every length is
// checked, nothing is allocated, and data that is not RTPS or is truncated is read as far as it is valid.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "records.hpp"

namespace lagometer::probes {

/// Bytes in several places, as sendmsg() takes them; only the first `bytes` of them count.
class Scattered {
 public:
  Scattered(std::span<const iovec> parts, uint64_t bytes) noexcept : parts_(parts), bytes_(bytes) {}

  /// Copies `size` bytes from `offset`; returns false and copies nothing if there are not that many.
  [[nodiscard]] bool read(uint64_t offset, void* to, size_t size) const noexcept;
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::span<const iovec> parts_;
  uint64_t bytes_;
};

[[nodiscard]] bool is_rtps(const Scattered& datagram) noexcept;

/// What identifies a sample other than writer and sequence number.
enum class Known : uint8_t { by_envelope, by_time };

/// Writes the submessages that `KeyKind` names to `keys`, in order; returns how many. Leaves out what finds no room.
size_t parse_rtps(const Scattered& datagram, std::span<KeyRecord> keys, Known known = Known::by_envelope) noexcept;

/// Looks for our envelope in the first bytes from `offset`; fills stream and sequence, and `found_at` with the number
/// of bytes before it.
bool find_envelope(const Scattered& bytes, uint64_t offset, uint64_t end, KeyRecord& key,
                   uint64_t* found_at = nullptr) noexcept;

}  // namespace lagometer::probes
