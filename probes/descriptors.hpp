// SPDX-License-Identifier: Apache-2.0
// What is known about the process's descriptors: which are sockets, how many bytes went over a stream, and which are
// eventfds or pipes that threads use to wake each other.
#pragma once

#include <cstdint>

namespace lagometer::probes {

enum class DescriptorKind : uint8_t { unknown = 0, other, datagram, stream, signal };

/// Asks the kernel the first time it sees a descriptor. Keeps errno.
[[nodiscard]] DescriptorKind kind_of(int descriptor) noexcept;

/// The descriptor may mean something else from now on.
void forget(int descriptor) noexcept;

/// These two ends, which may be one, were created as an eventfd or a pipe. Keeps errno.
void note_signal(int read_end, int write_end) noexcept;

/// Notes another descriptor of the same eventfd or pipe, if it is one. Keeps errno.
void note_copy(int of, int made) noexcept;

/// What identifies both ends of an eventfd or pipe in this process; never 0.
[[nodiscard]] uint64_t signal_of(int descriptor) noexcept;

/// Counts this many more bytes in this direction. Returns how many were counted before.
uint64_t count_bytes(int descriptor, bool sent, uint64_t bytes) noexcept;

/// A number that both ends of a stream compute for one direction; 0: its ends have no addresses.
[[nodiscard]] uint64_t connection_of(int descriptor, bool sent) noexcept;

}  // namespace lagometer::probes
