// SPDX-License-Identifier: Apache-2.0
// Calls of the C library that move bytes over sockets, or over eventfds and pipes that threads use to wake each other.
// Records only those that moved bytes.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "descriptors.hpp"
#include "journal.hpp"
#include "next.hpp"
#include "roscpp.hpp"
#include "rtps.hpp"

namespace lagometer::probes {
namespace {

constexpr size_t kKeysMax = 15;  // per datagram

/// What a function is for: sockets alone, or files as well.
enum class Serves : uint8_t { sockets, files };

/// Whether a call with these flags takes what has arrived: it does not only look at it, and it does not ask what became
/// of something sent.
bool takes(int flags) noexcept { return (flags & (MSG_PEEK | MSG_ERRQUEUE)) == 0; }

/// What to record about one call on this descriptor, if anything.
class SocketCall {
 public:
  SocketCall(int descriptor, bool sends, Serves serves = Serves::sockets) noexcept
      : descriptor_(descriptor),
        sends_(sends),
        serves_(serves),
        kind_(is_on() ? kind_of(descriptor) : DescriptorKind::other) {}

  /// Makes the call: `act()` returns how many bytes were moved, `parts()` where they are. flags: of a call that
  /// receives.
  template <typename Act, typename Parts>
  ssize_t make(Act&& act, Parts&& parts, int flags = 0) {
    if (kind_ == DescriptorKind::other) return act();
    Entered entered;
    const ssize_t moved = act();
    entered.left();
    if (moved <= 0 || !takes(flags)) return moved;
    const int error = errno;
    if (kind_ == DescriptorKind::signal)
      note_woken(entered, static_cast<uint64_t>(moved));
    else
      note(entered, static_cast<uint64_t>(moved), parts(), flags);
    errno = error;
    return moved;
  }

  [[nodiscard]] bool is_watched() const noexcept { return kind_ != DescriptorKind::other; }

  void note(const Entered& entered, uint64_t bytes, std::span<const iovec> parts, int flags = 0) noexcept {
    // TCP throws such bytes away: they are in no buffer, and there may be none.
    if (kind_ == DescriptorKind::stream && (flags & MSG_TRUNC) != 0) parts = {};
    CallRecord record{};
    record.descriptor = descriptor_;
    record.plain = serves_ == Serves::files ? 1 : 0;
    record.result = static_cast<int64_t>(bytes);
    if (kind_ == DescriptorKind::stream) {
      record.object = count_bytes(descriptor_, sends_, bytes);
      record.is_stream = 1;
      record.connection = connection_of(descriptor_, sends_);
    }
    std::array<KeyRecord, kKeysMax> keys;
    const size_t count = look_into(parts, bytes, keys);
    entered.write(sends_ ? Call::send : Call::receive, record, {keys.data(), count});
  }

 private:
  void note_woken(const Entered& entered, uint64_t bytes) const noexcept {
    CallRecord record{};
    record.descriptor = descriptor_;
    record.plain = serves_ == Serves::files ? 1 : 0;
    record.result = static_cast<int64_t>(bytes);
    record.object = signal_of(descriptor_);
    entered.write(sends_ ? Call::notify : Call::drained, record);
  }

  [[nodiscard]] size_t look_into(std::span<const iovec> parts, uint64_t size,
                                 std::span<KeyRecord> keys) const noexcept {
    if (parts.empty()) return 0;
    const Scattered bytes(parts, size);
    if (is_rtps(bytes)) return parse_rtps(bytes, keys, follows_programs() ? Known::by_time : Known::by_envelope);
    KeyRecord& key = keys[0];
    key = {};
    key.stream = kStreamUnknown;
    if (kind_ == DescriptorKind::stream && has_roscpp()) {
      key.kind = static_cast<uint8_t>(KeyKind::buffer);
      key.number = static_cast<int64_t>(reinterpret_cast<uintptr_t>(parts.front().iov_base));
      return 1;
    }
    key.kind = static_cast<uint8_t>(KeyKind::envelope);
    uint64_t before = 0;
    if (!find_envelope(bytes, 0, size, key, &before)) return 0;
    key.number = static_cast<int64_t>(before);
    return 1;
  }

  int descriptor_;
  bool sends_;
  Serves serves_;
  DescriptorKind kind_;
};

std::span<const iovec> parts_of(const msghdr* message) noexcept { return {message->msg_iov, message->msg_iovlen}; }

/// One buffer in the form of several.
class OnePart {
 public:
  OnePart(const void* data, size_t size) noexcept : part_{const_cast<void*>(data), size} {}
  std::span<const iovec> operator()() const noexcept { return {&part_, 1}; }

 private:
  iovec part_;
};

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

LAGOMETER_PROBE ssize_t send(int socket, const void* data, size_t size, int flags) {
  static constinit Next<ssize_t(int, const void*, size_t, int)> next("send");
  return SocketCall(socket, true).make([&] { return next(socket, data, size, flags); }, OnePart(data, size));
}

LAGOMETER_PROBE ssize_t sendto(int socket, const void* data, size_t size, int flags, const sockaddr* to,
                               socklen_t to_size) {
  static constinit Next<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)> next("sendto");
  return SocketCall(socket, true)
      .make([&] { return next(socket, data, size, flags, to, to_size); }, OnePart(data, size));
}

LAGOMETER_PROBE ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static constinit Next<ssize_t(int, const msghdr*, int)> next("sendmsg");
  return SocketCall(socket, true).make([&] { return next(socket, message, flags); }, [&] { return parts_of(message); });
}

LAGOMETER_PROBE int sendmmsg(int socket, mmsghdr* messages, unsigned count, int flags) {
  static constinit Next<int(int, mmsghdr*, unsigned, int)> next("sendmmsg");
  SocketCall call(socket, true);
  Entered entered;
  const int done = next(socket, messages, count, flags);
  if (done <= 0 || !call.is_watched()) return done;
  const int error = errno;
  entered.left();
  for (int index = 0; index < done; ++index)
    call.note(entered, messages[index].msg_len, parts_of(&messages[index].msg_hdr));
  errno = error;
  return done;
}

LAGOMETER_PROBE ssize_t write(int descriptor, const void* data, size_t size) {
  static constinit Next<ssize_t(int, const void*, size_t)> next("write");
  return SocketCall(descriptor, true, Serves::files)
      .make([&] { return next(descriptor, data, size); }, OnePart(data, size));
}

LAGOMETER_PROBE ssize_t writev(int descriptor, const iovec* parts, int count) {
  static constinit Next<ssize_t(int, const iovec*, int)> next("writev");
  return SocketCall(descriptor, true, Serves::files)
      .make([&] { return next(descriptor, parts, count); },
            [&] { return std::span(parts, static_cast<size_t>(count)); });
}

LAGOMETER_PROBE ssize_t recv(int socket, void* data, size_t size, int flags) {
  static constinit Next<ssize_t(int, void*, size_t, int)> next("recv");
  return SocketCall(socket, false).make([&] { return next(socket, data, size, flags); }, OnePart(data, size), flags);
}

LAGOMETER_PROBE ssize_t recvfrom(int socket, void* data, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  static constinit Next<ssize_t(int, void*, size_t, int, sockaddr*, socklen_t*)> next("recvfrom");
  return SocketCall(socket, false)
      .make([&] { return next(socket, data, size, flags, from, from_size); }, OnePart(data, size), flags);
}

LAGOMETER_PROBE ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static constinit Next<ssize_t(int, msghdr*, int)> next("recvmsg");
  return SocketCall(socket, false)
      .make([&] { return next(socket, message, flags); }, [&] { return parts_of(message); }, flags);
}

LAGOMETER_PROBE int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  static constinit Next<int(int, mmsghdr*, unsigned, int, timespec*)> next("recvmmsg");
  SocketCall call(socket, false);
  Entered entered;
  const int done = next(socket, messages, count, flags, timeout);
  if (done <= 0 || !call.is_watched() || !takes(flags)) return done;
  const int error = errno;
  entered.left();
  for (int index = 0; index < done; ++index)
    call.note(entered, messages[index].msg_len, parts_of(&messages[index].msg_hdr), flags);
  errno = error;
  return done;
}

LAGOMETER_PROBE ssize_t read(int descriptor, void* data, size_t size) {
  static constinit Next<ssize_t(int, void*, size_t)> next("read");
  return SocketCall(descriptor, false, Serves::files)
      .make([&] { return next(descriptor, data, size); }, OnePart(data, size));
}

LAGOMETER_PROBE ssize_t readv(int descriptor, const iovec* parts, int count) {
  static constinit Next<ssize_t(int, const iovec*, int)> next("readv");
  return SocketCall(descriptor, false, Serves::files)
      .make([&] { return next(descriptor, parts, count); },
            [&] { return std::span(parts, static_cast<size_t>(count)); });
}

// What a C library with checks replaces some of these with.
LAGOMETER_PROBE ssize_t __recv_chk(int socket, void* data, size_t size, size_t room, int flags) {
  static constinit Next<ssize_t(int, void*, size_t, size_t, int)> next("__recv_chk");
  return SocketCall(socket, false)
      .make([&] { return next(socket, data, size, room, flags); }, OnePart(data, size), flags);
}

LAGOMETER_PROBE ssize_t __recvfrom_chk(int socket, void* data, size_t size, size_t room, int flags, sockaddr* from,
                                       socklen_t* from_size) {
  static constinit Next<ssize_t(int, void*, size_t, size_t, int, sockaddr*, socklen_t*)> next("__recvfrom_chk");
  return SocketCall(socket, false)
      .make([&] { return next(socket, data, size, room, flags, from, from_size); }, OnePart(data, size), flags);
}

LAGOMETER_PROBE ssize_t __read_chk(int descriptor, void* data, size_t size, size_t room) {
  static constinit Next<ssize_t(int, void*, size_t, size_t)> next("__read_chk");
  return SocketCall(descriptor, false, Serves::files)
      .make([&] { return next(descriptor, data, size, room); }, OnePart(data, size));
}

LAGOMETER_PROBE int eventfd(unsigned count, int flags) noexcept {
  static constinit Next<int(unsigned, int)> next("eventfd");
  const int made = next(count, flags);
  if (made >= 0) note_signal(made, made);
  return made;
}

LAGOMETER_PROBE int pipe(int* ends) noexcept {
  static constinit Next<int(int*)> next("pipe");
  const int result = next(ends);
  if (result == 0) note_signal(ends[0], ends[1]);
  return result;
}

LAGOMETER_PROBE int pipe2(int* ends, int flags) noexcept {
  static constinit Next<int(int*, int)> next("pipe2");
  const int result = next(ends, flags);
  if (result == 0) note_signal(ends[0], ends[1]);
  return result;
}

/// A thread that waits for descriptors and must be woken by another may use this instead of a pipe.
LAGOMETER_PROBE int socketpair(int domain, int type, int protocol, int* ends) noexcept {
  static constinit Next<int(int, int, int, int*)> next("socketpair");
  const int result = next(domain, type, protocol, ends);
  if (result == 0) note_signal(ends[0], ends[1]);
  return result;
}

// What has just been made is not what had its number before, which may have been closed unseen: by the C library itself
// (fclose), or by a system call.
LAGOMETER_PROBE int socket(int domain, int type, int protocol) noexcept {
  static constinit Next<int(int, int, int)> next("socket");
  const int made = next(domain, type, protocol);
  forget(made);
  return made;
}

LAGOMETER_PROBE int accept(int listener, sockaddr* from, socklen_t* size) {
  static constinit Next<int(int, sockaddr*, socklen_t*)> next("accept");
  const int made = next(listener, from, size);
  forget(made);
  return made;
}

LAGOMETER_PROBE int accept4(int listener, sockaddr* from, socklen_t* size, int flags) {
  static constinit Next<int(int, sockaddr*, socklen_t*, int)> next("accept4");
  const int made = next(listener, from, size, flags);
  forget(made);
  return made;
}

// After these calls a descriptor may be a different one.
LAGOMETER_PROBE int close(int descriptor) {
  static constinit Next<int(int)> next("close");
  forget(descriptor);
  return next(descriptor);
}

LAGOMETER_PROBE int dup2(int from, int to) noexcept {
  static constinit Next<int(int, int)> next("dup2");
  if (from != to) forget(to);
  const int made = next(from, to);
  note_copy(from, made);
  return made;
}

LAGOMETER_PROBE int dup3(int from, int to, int flags) noexcept {
  static constinit Next<int(int, int, int)> next("dup3");
  if (from != to) forget(to);
  const int made = next(from, to, flags);
  note_copy(from, made);
  return made;
}

LAGOMETER_PROBE int dup(int from) noexcept {
  static constinit Next<int(int)> next("dup");
  const int made = next(from);
  note_copy(from, made);
  return made;
}

// Its third argument is a number or a pointer, or absent: passed on unchanged.
LAGOMETER_PROBE int any_fcntl(int descriptor, int command, long given) __asm__("fcntl");
LAGOMETER_PROBE int any_fcntl64(int descriptor, int command, long given) __asm__("fcntl64");

int any_fcntl(int descriptor, int command, long given) {
  static constinit Next<int(int, int, long)> next("fcntl");
  const int result = next(descriptor, command, given);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) note_copy(descriptor, result);
  return result;
}

int any_fcntl64(int descriptor, int command, long given) { return any_fcntl(descriptor, command, given); }

LAGOMETER_PROBE int connect(int socket, const sockaddr* address, socklen_t size) {
  static constinit Next<int(int, const sockaddr*, socklen_t)> next("connect");
  forget(socket);  // its addresses change from now on
  return next(socket, address, size);
}
