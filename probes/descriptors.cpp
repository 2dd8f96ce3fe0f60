// SPDX-License-Identifier: Apache-2.0
#include "descriptors.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
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
std::array<Known, kDescriptorsMax> all;  // zeros; only used pages take memory

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

/// The number of the other end of an unnamed socket, as the kernel reports it (sock_diag(7)); 0: it does not.
uint32_t peer_inode_of(uint32_t inode) noexcept {
  struct Request {
    nlmsghdr head;
    unix_diag_req body;
  };
  Request request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.head.nlmsg_flags = NLM_F_REQUEST;
  request.body.sdiag_family = AF_UNIX;
  request.body.udiag_states = ~0U;
  request.body.udiag_ino = inode;
  request.body.udiag_show = UDIAG_SHOW_PEER;
  request.body.udiag_cookie[0] = request.body.udiag_cookie[1] = ~0U;
  // Not through functions of the C library, which this library intercepts.
  const auto socket = static_cast<int>(syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (socket < 0) return 0;
  alignas(nlmsghdr) std::array<uint8_t, 512> answer{};
  long size = syscall(SYS_sendto, socket, &request, sizeof request, MSG_DONTWAIT, nullptr, 0);
  if (size > 0) size = syscall(SYS_recvfrom, socket, answer.data(), answer.size(), MSG_DONTWAIT, nullptr, nullptr);
  static_cast<void>(syscall(SYS_close, socket));
  constexpr long kBefore = NLMSG_LENGTH(sizeof(unix_diag_msg));
  nlmsghdr head{};
  if (size > kBefore) std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY) return 0;
  for (long at = kBefore; at + long{sizeof(rtattr)} + 4 <= size;) {
    rtattr part;
    std::memcpy(&part, answer.data() + at, sizeof part);
    uint32_t peer = 0;
    if (part.rta_type == UNIX_DIAG_PEER) {
      std::memcpy(&peer, answer.data() + at + sizeof part, sizeof peer);
      return peer;
    }
    if (part.rta_len < sizeof part) break;
    at += RTA_ALIGN(part.rta_len);
  }
  return 0;
}

/// For a socket pair whose creation was not seen, such as through Rust's own system call: the same number for both
/// ends, different from those that this library assigns; 0: not such a pair.
uint64_t unseen_pair_of(int descriptor) noexcept {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 || own.ss_family != AF_UNIX) return 0;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) return 0;
  ucred who{};
  socklen_t who_size = sizeof who;
  if (own_size > sizeof own.ss_family || peer_size > sizeof peer.ss_family) return 0;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &who, &who_size) != 0 || who.pid != getpid()) return 0;
  struct stat facts{};
  if (fstat(descriptor, &facts) != 0) return 0;
  const auto here = static_cast<uint32_t>(facts.st_ino);
  const uint32_t there = peer_inode_of(here);
  constexpr uint64_t kUnseen = uint64_t{1} << 63U;
  return there != 0 ? kUnseen | std::min(here, there) : 0;
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
    if (const uint64_t pair = kind == DescriptorKind::stream ? unseen_pair_of(descriptor) : 0; pair != 0) {
      known.sent.store(pair, std::memory_order_relaxed);
      kind = DescriptorKind::signal;
    }
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

void note_copy(int of, int made) noexcept {
  if (!has_room_for(of) || !has_room_for(made) || of == made) return;
  const Known& known = all[static_cast<size_t>(of)];
  if (known.kind.load(std::memory_order_relaxed) != DescriptorKind::signal) return;
  Known& copy = all[static_cast<size_t>(made)];
  copy.sent.store(known.sent.load(std::memory_order_relaxed), std::memory_order_relaxed);
  copy.kind.store(DescriptorKind::signal, std::memory_order_relaxed);
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
