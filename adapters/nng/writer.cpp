// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <nng/protocol/pubsub0/pub.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace lagometer::nng {

namespace {

/// How long it takes, on a busy machine, until what an endpoint's queue holds is the kernel's; 0: a message is given to
/// the kernel as a whole.
int64_t to_going_ns(const std::string& transport, uint64_t bytes_max, int queue) noexcept {
  constexpr uint64_t whole_bytes = 16'384;  // of a Unix-domain socket
  constexpr int64_t least_ns = 20'000'000;
  constexpr int64_t most_ns = 500'000'000;
  constexpr uint64_t byte_ns = 5;
  if (transport == "inproc" || (transport == "ipc" && bytes_max <= whole_bytes)) return 0;
  const auto queued_ns = static_cast<int64_t>(bytes_max * static_cast<uint64_t>(queue) * byte_ns);
  return std::min(least_ns + queued_ns, most_ns);
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      socket_(&nng_pub0_open),
      subscribers_(context_.meeting(), endpoint_) {
  const auto messages = queue_messages(context_.choices().send_buffer_messages, endpoint_);
  if (messages) socket_.set(NNG_OPT_SENDBUF, "NNG_OPT_SENDBUF", *messages);
  description_ = socket_.describe();
  const int queue = socket_.number(NNG_OPT_SENDBUF, "NNG_OPT_SENDBUF");
  going_ns_ = to_going_ns(context_.choices().transport, endpoint_.type.bytes_max, queue);
}

Writer::~Writer() {
  publication_.reset();
  if (socket_.connections() > 0) let_messages_go();
}

void Writer::enable() {
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
  // It never waits: where a queue is full a PUB socket drops the oldest.
  if (const int error = nng_sendmsg(socket_.get(), message_.get(), 0); error != 0) {
    message_.reset();
    throw_nng_error(error, "publishing on '" + endpoint_.topic + "'");
  }
  static_cast<void>(message_.release());  // it is nng's now
  if (going_ns_ > 0) last_sent_ns_.store(now_ns(), std::memory_order_relaxed);
  return LAGOMETER_OK;
}

void Writer::matched(lagometer_matched& out) {
  look();
  out.count = socket_.connections();
  out.exact = 0;
}

void Writer::look() {
  const auto connect = [this](const std::string& address) {
    return std::optional<nng_dialer>(socket_.connect(address));
  };
  const auto disconnect = [this](nng_dialer dialer) {
    let_messages_go();
    Socket::disconnect(dialer);
  };
  subscribers_.look(connect, disconnect);
}

/// nng 1.5 hangs in closing a connection on which a message is half sent: see Reader::say_goodbye().
void Writer::let_messages_go() const noexcept {
  const int64_t going_ns = last_sent_ns_.load(std::memory_order_relaxed) + going_ns_ - now_ns();
  if (going_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(going_ns, going_ns_)));
}

}  // namespace lagometer::nng
