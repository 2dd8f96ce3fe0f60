// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "reader.hpp"

namespace lagometer::zeromq {

namespace {

/// In ZeroMQ's unit of milliseconds, at least one.
int to_timeout_ms(int64_t duration_ns) noexcept {
  constexpr int64_t millisecond_ns = 1'000'000;
  const int64_t timeout_ms = duration_ns / millisecond_ns + (duration_ns % millisecond_ns != 0 ? 1 : 0);
  return static_cast<int>(std::clamp<int64_t>(timeout_ms, 1, std::numeric_limits<int>::max()));
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : Writer(node, config, Kind::topic, nullptr, std::make_shared<Socket>(node.context.library(), ZMQ_PUB)) {
  configure();
  // A writer that drops is first told that a queue is full: see commit_to_topic().
  if (holds_back_) {
    socket_->set(ZMQ_XPUB_NODROP, "ZMQ_XPUB_NODROP", 1, false);
  } else {
    socket_->put(ZMQ_XPUB_NODROP, 1);
  }
  description_ = socket_->describe();
}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, const std::shared_ptr<Line>& line)
    : Writer(node, config, kind, line, std::shared_ptr<Socket>(line, &line->socket)) {
  configure();
  // A reply to a client that is gone or whose queue is full is rejected: otherwise it would vanish.
  if (kind == Kind::server) socket_->set(ZMQ_ROUTER_MANDATORY, "ZMQ_ROUTER_MANDATORY", 1, false);
  endpoint_.topic = service_folder(endpoint_.topic);
  description_ = socket_->describe();
}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Line> line,
               std::shared_ptr<Socket> socket)
    : context_(node.context),
      kind_(kind),
      endpoint_(Type::endpoint(config)),
      holds_back_(endpoint_.reliable || endpoint_.keep_all || kind != Kind::topic),
      line_(std::move(line)),
      socket_(std::move(socket)),
      socket_mutex_(line_ ? line_->mutex : own_mutex_),
      subscribers_(context_.meeting(), endpoint_) {}

void Writer::configure() {
  const Choices& choices = context_.choices();
  const auto high_water_mark = choices.send_hwm ? choices.send_hwm : endpoint_.depth_asked;
  if (high_water_mark) socket_->set(ZMQ_SNDHWM, "ZMQ_SNDHWM", *high_water_mark);
  if (choices.socket_buffer_bytes && context_.meeting().transport() == "tcp")
    socket_->set(ZMQ_SNDBUF, "ZMQ_SNDBUF", *choices.socket_buffer_bytes);
  // Otherwise a connecting publisher keeps a queue for a subscriber that is gone, and waits until it has room.
  socket_->set(ZMQ_IMMEDIATE, "ZMQ_IMMEDIATE", 1);
  if (endpoint_.reliable) socket_->set(ZMQ_SNDTIMEO, "ZMQ_SNDTIMEO", to_timeout_ms(endpoint_.blocking_ns_max));
}

void Writer::enable() {
  if (kind_ == Kind::server) return;  // clients connect by themselves
  publication_.emplace(context_.door(), context_.meeting(), endpoint_.topic, [this] { look(); });
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  message_.clear();
  if (zmq_msg_init_size(message_.get(), bytes) != 0) {
    zmq_msg_init(message_.get());  // the failed call left nothing to close
    throw_zmq_error("making a message of " + std::to_string(bytes) + " bytes");
  }
  message.origin = LAGOMETER_ORIGIN_NATIVE;
  message.region_count = 1;
  message.regions[0] = {static_cast<uint8_t*>(zmq_msg_data(message_.get())), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(const lagometer_message&) {
  if (kind_ == Kind::client) return commit_request();
  const std::scoped_lock lock(socket_mutex_);
  if (kind_ == Kind::topic) return commit_to_topic();
  return send_reply() ? LAGOMETER_OK : reject();
}

lagometer_status Writer::reject() {
  message_.clear();
  rejected_.fetch_add(1, std::memory_order_relaxed);
  return LAGOMETER_REJECTED;
}

/// Waits for room, but not for a server that is not there: while it waits nobody can connect to the one that comes.
lagometer_status Writer::commit_request() {
  const auto sent = [this](int flags) {
    const std::scoped_lock lock(socket_mutex_);
    const bool accepted = send(flags);
    line_->note_arrivals();
    return accepted;
  };
  if (sent(ZMQ_DONTWAIT)) return LAGOMETER_OK;
  return endpoint_.reliable && subscribers_.anyone() && sent(0) ? LAGOMETER_OK : reject();
}

void Writer::answer(const lagometer_sample& request) {
  auto& place = *static_cast<Reader::Place*>(request.adapter_data);
  if (zmq_msg_size(place.sender.get()) == 0)
    throw Error(LAGOMETER_INVALID, "zeromq: a request of '" + endpoint_.topic + "' is answered twice");
  if (zmq_msg_move(receiver_.get(), place.sender.get()) != 0) throw_zmq_error("keeping who sent a request");
}

/// Returns false if the client has no room, or is gone.
bool Writer::send_reply() {
  if (zmq_msg_size(receiver_.get()) == 0)
    throw Error(LAGOMETER_INVALID, "zeromq: a reply on '" + endpoint_.topic + "' without a request: call answer()");
  const int flags = endpoint_.reliable ? 0 : ZMQ_DONTWAIT;
  while (zmq_msg_send(receiver_.get(), socket_->get(), ZMQ_SNDMORE | flags) < 0) {
    if (zmq_errno() == EINTR) continue;
    if (zmq_errno() != EAGAIN && zmq_errno() != EHOSTUNREACH) throw_zmq_error("answering on '" + endpoint_.topic + "'");
    receiver_.clear();
    return false;
  }
  return send(flags);
}

lagometer_status Writer::commit_to_topic() {
  if (send(endpoint_.reliable ? 0 : ZMQ_DONTWAIT)) return LAGOMETER_OK;  // a reliable writer has waited here
  if (!endpoint_.reliable) {
    // libzmq only learns about once a millisecond what was read from its queues, and treats a queue as full that has
    // long been empty. A query for ZMQ_EVENTS makes it check.
    static_cast<void>(socket_->number(ZMQ_EVENTS));
    if (send(ZMQ_DONTWAIT)) return LAGOMETER_OK;
  }
  if (!holds_back_) {
    socket_->put(ZMQ_XPUB_NODROP, 0);
    const bool sent = send(ZMQ_DONTWAIT);  // to those with room
    socket_->put(ZMQ_XPUB_NODROP, 1);
    if (sent) return LAGOMETER_OK;
  }
  return reject();
}

/// Returns false if there is no room.
bool Writer::send(int flags) {
  for (;;) {
    if (zmq_msg_send(message_.get(), socket_->get(), flags) >= 0) return true;
    if (zmq_errno() == EAGAIN) return false;
    if (zmq_errno() != EINTR) throw_zmq_error("sending on '" + endpoint_.topic + "'");
  }
}

void Writer::matched(lagometer_matched& out) {
  out.count = 0;
  out.exact = 2;  // a socket does not know who is at its other ends
  if (kind_ == Kind::server) return;
  context_.meeting().ask(endpoint_.topic);
  look();
}

void Writer::look() {
  const auto connect = [this](const std::string& address) -> std::optional<std::string> {
    const std::scoped_lock lock(socket_mutex_);
    if (zmq_connect(socket_->get(), address.c_str()) != 0) throw_zmq_error("connecting to " + address);
    return address;
  };
  const auto disconnect = [this](const std::string& address) {
    const std::scoped_lock lock(socket_mutex_);
    zmq_disconnect(socket_->get(), address.c_str());  // it may have ended by itself
  };
  subscribers_.look(connect, disconnect);
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = holds_back_ ? LAGOMETER_COUNTER_REJECTED : 0;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

}  // namespace lagometer::zeromq
