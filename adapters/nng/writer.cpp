// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <nng/protocol/pubsub0/pub.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

namespace lagometer::nng {

namespace {

/// How long it takes, on a busy machine, until the messages in an endpoint's queue are in the kernel; 0: a message is
/// passed to the kernel as a whole.
int64_t to_going_ns(const std::string& transport, uint64_t bytes_max, int queue) noexcept {
  constexpr uint64_t whole_bytes = 16'384;  // of a Unix-domain socket
  constexpr int64_t least_ns = 20'000'000;
  constexpr int64_t most_ns = 500'000'000;
  constexpr uint64_t byte_ns = 5;
  if (transport == "inproc" || (transport == "ipc" && bytes_max <= whole_bytes)) return 0;
  const auto queued_ns = static_cast<int64_t>(bytes_max * static_cast<uint64_t>(queue) * byte_ns);
  return std::min(least_ns + queued_ns, most_ns);
}

/// What a REQ socket in raw mode requires: the last part of the return path has the highest bit set.
constexpr uint32_t last_part = 0x8000'0000;

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : Writer(node, config, Kind::topic, std::make_shared<Socket>(&nng_pub0_open)) {}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Socket> socket)
    : context_(node.context),
      kind_(kind),
      endpoint_(endpoint_of(config, kind)),
      socket_(std::move(socket)),
      subscribers_(context_.meeting(), endpoint_) {
  const auto messages = queue_messages(context_.choices().send_buffer_messages, endpoint_);
  if (messages) socket_->set(NNG_OPT_SENDBUF, "NNG_OPT_SENDBUF", *messages);
  if (kind != Kind::topic) {
    if (endpoint_.reliable) socket_->wait_at_most(endpoint_.blocking_ns_max);
    endpoint_.topic = service_folder(endpoint_.topic);
  }
  description_ = socket_->describe();
  const int queue = socket_->number(NNG_OPT_SENDBUF, "NNG_OPT_SENDBUF");
  going_ns_ = to_going_ns(context_.meeting().transport(), endpoint_.type.bytes_max, queue);
}

Writer::~Writer() {
  publication_.reset();
  if (socket_->connections() > 0) let_messages_go();
}

void Writer::enable() {
  if (kind_ == Kind::server) return;  // clients connect by themselves
  publication_.emplace(context_.door(), context_.meeting(), endpoint_.topic, [this] { look(); });
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  nng_msg* made = nullptr;
  if (const int error = nng_msg_alloc(&made, bytes); error != 0)
    throw_nng_error(error, "making a message of " + std::to_string(bytes) + " bytes");
  message_.reset(made);
  message.origin = LAGOMETER_ORIGIN_NATIVE;
  message.region_count = 1;
  message.regions[0] = {static_cast<uint8_t*>(nng_msg_body(made)), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(const lagometer_message&) {
  if (kind_ != Kind::topic) address_message();
  // A PUB socket never waits: if a queue is full, it drops the oldest message. A client doesn't wait for a server that
  // is not there.
  const bool alone = kind_ == Kind::client && socket_->connections() == 0;
  const bool waits = kind_ == Kind::topic || (endpoint_.reliable && !alone);
  const int error = nng_sendmsg(socket_->get(), message_.get(), waits ? 0 : static_cast<int>(NNG_FLAG_NONBLOCK));
  if (error != 0) {
    message_.reset();
    if (error != NNG_EAGAIN && error != NNG_ETIMEDOUT) throw_nng_error(error, "sending on '" + endpoint_.topic + "'");
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }
  static_cast<void>(message_.release());  // it belongs to nng now
  if (going_ns_ > 0) last_sent_ns_.store(now_ns(), std::memory_order_relaxed);
  return LAGOMETER_OK;
}

void Writer::answer(const lagometer_sample& request) {
  nng_msg* const message = static_cast<Message*>(request.adapter_data)->get();
  const std::span header(static_cast<const uint8_t*>(nng_msg_header(message)), nng_msg_header_len(message));
  if (header.empty()) throw Error(LAGOMETER_INVALID, "nng: a request of '" + endpoint_.topic + "' is answered twice");
  if (header.size() > way_back_.size())
    throw Error(LAGOMETER_FAILED, "nng: a request of '" + endpoint_.topic + "' came a longer way than there can be");
  std::copy(header.begin(), header.end(), way_back_.begin());
  way_back_bytes_ = header.size();
  nng_msg_header_clear(message);
}

/// Sets where a service's message goes: a request gets a number, and a reply gets the header of its request.
void Writer::address_message() {
  int error = 0;
  if (kind_ == Kind::client) {
    error = nng_msg_header_append_u32(message_.get(), last_part | ++requests_);
  } else {
    if (way_back_bytes_ == 0)
      throw Error(LAGOMETER_INVALID, "nng: a reply on '" + endpoint_.topic + "' without a request: call answer()");
    error = nng_msg_header_append(message_.get(), way_back_.data(), std::exchange(way_back_bytes_, 0));
  }
  if (error != 0) throw_nng_error(error, "addressing a message of '" + endpoint_.topic + "'");
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = kind_ == Kind::topic ? 0 : LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

void Writer::matched(lagometer_matched& out) {
  if (kind_ != Kind::server) {
    context_.meeting().ask(endpoint_.topic);
    look();
  }
  out.count = socket_->connections();
  out.exact = 0;
}

void Writer::look() {
  const auto connect = [this](const std::string& address) {
    return std::optional<nng_dialer>(socket_->connect(address));
  };
  const auto disconnect = [this](nng_dialer dialer) {
    let_messages_go();
    Socket::disconnect(dialer);
  };
  subscribers_.look(connect, disconnect);
}

/// nng 1.5 hangs when it closes a connection on which a message is half sent: see Reader::say_goodbye().
void Writer::let_messages_go() const noexcept {
  const int64_t going_ns = last_sent_ns_.load(std::memory_order_relaxed) + going_ns_ - now_ns();
  if (going_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(going_ns, going_ns_)));
}

}  // namespace lagometer::nng
