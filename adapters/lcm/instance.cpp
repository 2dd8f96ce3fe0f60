// SPDX-License-Identifier: Apache-2.0
#include "instance.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "descriptor.hpp"

namespace lagometer::lcm {

namespace {

/// A channel's name as a regular expression that only matches it.
std::string as_pattern(const std::string& channel) {
  std::string pattern;
  for (const char c : channel) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       (static_cast<unsigned char>(c) & 0x80U) != 0 || c == '_' || c == '/';
    if (!plain) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

Instance::Instance(const std::string& url) : lcm_(lcm_create(url.c_str())) {
  if (lcm_ == nullptr) {
    throw Error(LAGOMETER_FAILED, "lcm: lcm_create(\"" + url +
                                      "\") failed; it says why on standard error. It needs a route for multicast: "
                                      "ip route add 224.0.0.0/4 dev lo, or network: private");
  }
}

Instance::~Instance() { lcm_destroy(lcm_); }

bool Instance::publish(const std::string& channel, const void* data, uint64_t bytes) {
  errno = 0;
  if (lcm_publish(lcm_, channel.c_str(), data, static_cast<unsigned>(bytes)) >= 0) return true;
  if (errno == EAGAIN || errno == ENOBUFS) return false;
  throw_system_error("lcm: publishing " + std::to_string(bytes) + " bytes on '" + channel + "'");
}

void Instance::on_message(const lcm_recv_buf_t* buffer, const char*, void* user) noexcept {
  static_cast<Subscriber*>(user)->receive(*buffer);
}

void Instance::subscribe(const std::string& channel, Subscriber& subscriber, int queue_messages) {
  lcm_subscription_t* const handle = lcm_subscribe(lcm_, as_pattern(channel).c_str(), &on_message, &subscriber);
  if (handle == nullptr) {
    throw Error(LAGOMETER_FAILED, "lcm: subscribing to '" + channel +
                                      "' failed; it says why on standard error. Its test message to itself may not "
                                      "have come: is multicast routed over the loopback?");
  }
  if (queue_messages > 0) lcm_subscription_set_queue_capacity(handle, queue_messages);
  const std::scoped_lock lock(handling_);
  descriptor_ = lcm_get_fileno(lcm_);
  subscriptions_.push_back({&subscriber, handle});
}

void Instance::unsubscribe(Subscriber& subscriber) noexcept {
  leaving_.fetch_add(1);
  {
    // LCM alone is not enough: it may call a handler that it looked up just before the handler was removed.
    const std::scoped_lock lock(handling_);
    std::erase_if(subscriptions_, [&](const Subscription& each) {
      if (each.subscriber != &subscriber) return false;
      lcm_unsubscribe(lcm_, each.handle);
      return true;
    });
  }
  leaving_.fetch_sub(1);
  leaving_.notify_all();
}

void Instance::handle() {
  // A mutex is not fair: a leaving subscriber would have to be lucky while messages keep coming.
  for (uint32_t leaving = leaving_.load(); leaving != 0; leaving = leaving_.load()) leaving_.wait(leaving);
  const std::scoped_lock lock(handling_);
  if (lcm_handle(lcm_) < 0) throw Error(LAGOMETER_FAILED, "lcm: lcm_handle() failed; it says why on standard error");
}

bool Instance::handle_if_any() {
  const auto has_room = [](const Subscription& each) { return each.subscriber->has_room(); };
  if (!std::all_of(subscriptions_.begin(), subscriptions_.end(), has_room)) return false;
  if (!std::exchange(known_readable_, false)) {
    pollfd readable{.fd = descriptor(), .events = POLLIN, .revents = 0};
    if (poll(&readable, 1, 0) <= 0) return false;
  }
  handle();
  return true;
}

}  // namespace lagometer::lcm
