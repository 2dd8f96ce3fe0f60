// SPDX-License-Identifier: Apache-2.0
#include <sys/eventfd.h>

#include <algorithm>
#include <limits>

#include "objects.hpp"

namespace lagometer::mqtt {

namespace {

constexpr int64_t kNever_ns = std::numeric_limits<int64_t>::max();
constexpr int64_t kSecond_ns = 1'000'000'000;

}  // namespace

Waitset::Waitset(Context&) : trigger_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!trigger_.valid()) throw_system_error("mqtt: making an eventfd");
  events_.push_back({.fd = trigger_.get(), .events = POLLIN, .revents = 0});
}

void Waitset::attach(Reader& reader) {
  if (!reader.waits() || reader.own_client() != nullptr)
    throw Error(LAGOMETER_INVALID,
                "mqtt: a reader is attached to a waitset before it is enabled, with dispatch by waitset");
  readers_.push_back(&reader);
  events_.push_back({.fd = -1, .events = POLLIN, .revents = 0});
}

lagometer_status Waitset::wait(int64_t until_ns) {
  do {
    if (poll_once(until_ns)) return LAGOMETER_OK;
  } while (now_ns() < until_ns);
  return LAGOMETER_TIMEOUT;
}

bool Waitset::poll_once(int64_t until_ns) {
  bool there = false;
  for (size_t index = 0; index < readers_.size(); ++index) {
    const Client* const client = readers_[index]->own_client();
    there = there || readers_[index]->has_message();
    const bool writes = client != nullptr && client->wants_write();
    events_[index + 1].fd = client != nullptr ? client->socket() : -1;
    events_[index + 1].events = static_cast<int16_t>(writes ? POLLIN | POLLOUT : POLLIN);
  }
  timespec timeout{};
  if (!there && until_ns != kNever_ns) {
    const int64_t left_ns = std::max<int64_t>(until_ns - now_ns(), 0);
    timeout = {.tv_sec = left_ns / kSecond_ns, .tv_nsec = left_ns % kSecond_ns};
  }
  // If there is a message already, this only checks what else there is.
  const timespec* const limit = !there && until_ns == kNever_ns ? nullptr : &timeout;
  if (ppoll(events_.data(), events_.size(), limit, nullptr) <= 0) return there;
  if (events_[0].revents != 0) {
    uint64_t count = 0;
    there = read(trigger_.get(), &count, sizeof count) > 0 || there;
  }
  for (size_t index = 0; index < readers_.size(); ++index) {
    const int16_t happened = events_[index + 1].revents;
    if ((happened & POLLOUT) != 0) readers_[index]->own_client()->write();
    there = there || (happened & ~POLLOUT) != 0;
  }
  return there;
}

void Waitset::trigger() noexcept {
  const uint64_t one = 1;
  static_cast<void>(!write(trigger_.get(), &one, sizeof one));
}

}  // namespace lagometer::mqtt
