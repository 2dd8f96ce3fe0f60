// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace lagometer::probes {
namespace {

constexpr int kDescriptorsMax = 1 << 16;

struct Known {
  std::atomic<DescriptorKind> kind;
  std::atomic<uint64_t> sent, received;  // bytes
  std::atomic<uint64_t> sent_connection, received_connection;
};
std::array<Known, kDescriptorsMax> all;  // zeros, of which only pages in use take memory

struct Address {
  std::array<uint8_t, 16> host{};
  uint16_t port = 0;
  bool known = false;
};

Address address_of(const sockaddr_storage& given) noexcept {
  Address result;
  if (given.ss_family == AF_INET) {
    sockaddr_in address;
    std::memcpy(&address, &given, sizeof address);
    std::memcpy(result.host.data(), &address.sin_addr, sizeof address.sin_addr);
    result.port = address.sin_port;
    result.known = true;
  } else if (given.ss_family == AF_INET6) {
    sockaddr_in6 address;
    std::memcpy(&address, &given, sizeof address);
    constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const auto* const raw = address.sin6_addr.s6_addr;
    if (std::memcmp(raw, kMapped.data(), kMapped.size()) == 0)
      std::memcpy(result.host.data(), raw + kMapped.size(), 4);
    else
      std::memcpy(result.host.data(), raw, result.host.size());
    result.port = address.sin6_port;
    result.known = true;
  }
  return result;
}

/// FNV-1a over both ends, the sending one first.
uint64_t hash(const Address& from, const Address& to) noexcept {
  uint64_t value = 0xcbf29ce484222325u;
  const auto add = [&value](const void* data, size_t size) {
    for (size_t index = 0; index < size; ++index)
      value = (value ^ static_cast<const uint8_t*>(data)[index]) * 0x100000001b3u;
  };
  for (const Address* end : {&from, &to}) {
    add(end->host.data(), end->host.size());
    add(&end->port, sizeof end->port);
  }
  return value == 0 ? 1 : value;
}

void learn_connection(int descriptor, Known& known) noexcept {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0) return;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return;
  const Address here = address_of(own), there = address_of(peer);
  if (!here.known || !there.known) return;
  known.sent_connection.store(hash(here, there), std::memory_order_relaxed);
  known.received_connection.store(hash(there, here), std::memory_order_relaxed);
}

bool has_room_for(int descriptor) noexcept { return descriptor >= 0 && descriptor < kDescriptorsMax; }

}  // namespace

DescriptorKind kind_of(int descriptor) noexcept {
  if (!has_room_for(descriptor)) return DescriptorKind::other;
  Known& known = all[static_cast<size_t>(descriptor)];
  DescriptorKind kind = known.kind.load(std::memory_order_relaxed);
  if (kind != DescriptorKind::unknown) return kind;
  const int before = errno;
  int type = 0;
  socklen_t size = sizeof type;
  kind = DescriptorKind::other;
  if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0) {
    kind = type == SOCK_STREAM ? DescriptorKind::stream : DescriptorKind::datagram;
    if (kind == DescriptorKind::stream) learn_connection(descriptor, known);
  }
  known.kind.store(kind, std::memory_order_relaxed);
  errno = before;
  return kind;
}

void note_signal(int read_end, int write_end) noexcept {
  static std::atomic<uint64_t> last{0};
  const uint64_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const int end : {read_end, write_end}) {
    if (!has_room_for(end)) continue;
    Known& known = all[static_cast<size_t>(end)];
    known.sent.store(number, std::memory_order_relaxed);
    known.kind.store(DescriptorKind::signal, std::memory_order_relaxed);
  }
}

uint64_t signal_of(int descriptor) noexcept {
  return all[static_cast<size_t>(descriptor)].sent.load(std::memory_order_relaxed);
}

void forget(int descriptor) noexcept {
  if (!has_room_for(descriptor)) return;
  Known& known = all[static_cast<size_t>(descriptor)];
  if (known.kind.load(std::memory_order_relaxed) == DescriptorKind::unknown) return;
  for (auto* value : {&known.sent, &known.received, &known.sent_connection, &known.received_connection})
    value->store(0, std::memory_order_relaxed);
  known.kind.store(DescriptorKind::unknown, std::memory_order_relaxed);
}

uint64_t count_bytes(int descriptor, bool sent, uint64_t bytes) noexcept {
  Known& known = all[static_cast<size_t>(descriptor)];
  return (sent ? known.sent : known.received).fetch_add(bytes, std::memory_order_relaxed);
}

uint64_t connection_of(int descriptor, bool sent) noexcept {
  const Known& known = all[static_cast<size_t>(descriptor)];
  return (sent ? known.sent_connection : known.received_connection).load(std::memory_order_relaxed);
}

}  // namespace lagometer::probes
