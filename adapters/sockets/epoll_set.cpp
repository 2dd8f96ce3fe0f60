// SPDX-License-Identifier: Apache-2.0
#include "epoll_set.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <limits>

namespace lagometer::sockets {

namespace {

constexpr int64_t never_ns = std::numeric_limits<int64_t>::max();
constexpr int64_t second_ns = 1'000'000'000;

}  // namespace

EpollSet::EpollSet() : epoll_(epoll_create1(EPOLL_CLOEXEC)), trigger_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_.valid() || !trigger_.valid()) throw_system_error("making an epoll set");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = triggered}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, trigger_.get(), &event) != 0) throw_system_error("watching an eventfd");
}

void EpollSet::watch(int socket, uint32_t slot, uint32_t tag) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = (uint64_t{slot} << 32U) | tag}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket, &event) != 0) throw_system_error("watching a socket");
}

void EpollSet::forget(int socket) noexcept { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr); }

std::span<epoll_event> EpollSet::wait(Events& events, int64_t until_ns) noexcept {
  timespec timeout{};
  if (until_ns != never_ns) {
    const int64_t now = now_ns();
    const int64_t left_ns = until_ns > now ? until_ns - now : 0;
    timeout = {.tv_sec = left_ns / second_ns, .tv_nsec = left_ns % second_ns};
  }
  const timespec* const limit = until_ns == never_ns ? nullptr : &timeout;
  int count = epoll_pwait2(epoll_.get(), events.data(), static_cast<int>(events.size()), limit, nullptr);
  if (count < 0 && errno == ENOSYS) {  // Linux before 5.11 only has epoll_wait, in milliseconds
    pollfd self{.fd = epoll_.get(), .events = POLLIN, .revents = 0};
    ppoll(&self, 1, limit, nullptr);
    count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  }
  return {events.data(), count > 0 ? static_cast<size_t>(count) : 0};
}

void EpollSet::trigger() noexcept { eventfd_write(trigger_.get(), 1); }

void EpollSet::clear_trigger() noexcept {
  eventfd_t count = 0;
  eventfd_read(trigger_.get(), &count);
}

bool EpollSet::anything_buffered() noexcept {
  bool found = false;
  for (uint32_t slot = 0; !found && slot < sources_.end(); ++slot) {
    sources_.serve(slot, [&found](const Source& source) noexcept { found = source.buffered(); });
  }
  return found;
}

}  // namespace lagometer::sockets
