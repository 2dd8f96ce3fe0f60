// SPDX-License-Identifier: Apache-2.0
// What is known of the process's descriptors: which are sockets, and how many bytes went over a stream.
#pragma once

#include <cstdint>

namespace lagometer::probes {

enum class DescriptorKind : uint8_t { unknown = 0, other, datagram, stream };

/// Asks the kernel the first time that it sees a descriptor. Keeps errno.
[[nodiscard]] DescriptorKind kind_of(int descriptor) noexcept;

/// The descriptor may mean something else from now on.
void forget(int descriptor) noexcept;

/// So many bytes more went this way. Returns how many had before.
uint64_t count_bytes(int descriptor, bool sent, uint64_t bytes) noexcept;

/// A number that both ends of a stream have for what goes from one to the other; 0: its ends have no addresses.
[[nodiscard]] uint64_t connection_of(int descriptor, bool sent) noexcept;

}  // namespace lagometer::probes
