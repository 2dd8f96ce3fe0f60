// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <nng/protocol/pubsub0/sub.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace lagometer::nng {

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : Reader(node, config, Kind::topic, std::make_shared<Socket>(&nng_sub0_open)) {}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Socket> socket)
    : context_(node.context), kind_(kind), endpoint_(endpoint_of(config, kind)), socket_(std::move(socket)) {
  const auto messages = queue_messages(context_.choices().receive_buffer_messages, endpoint_);
  if (messages) socket_->set(NNG_OPT_RECVBUF, "NNG_OPT_RECVBUF", *messages);
  socket_->accept_any_size();
  if (kind == Kind::topic) {
    socket_->subscribe_to_all();
  } else {
    endpoint_.topic = service_folder(endpoint_.topic);
  }
  description_ = socket_->describe();
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER)
    listener_.emplace(socket_->get(), endpoint_.on_data, endpoint_.user);
}

Reader::~Reader() {
  listener_.reset();
  if (announcement_) say_goodbye();
}

/// Has the publishers hang up. nng 1.5 hangs when it closes a connection that is receiving a message: if the message's
/// length was read and its callback was not called yet, nobody ends the receive that should continue.
void Reader::say_goodbye() noexcept {
  constexpr int64_t longest_ns = 2'000'000'000;  // a stopped publisher does not send anything either
  announcement_.reset();
  guarded([this] {
    context_.meeting().knock(endpoint_.topic);
    return LAGOMETER_OK;
  });
  const int64_t until_ns = now_ns() + longest_ns;
  while (socket_->connections() > 0 && now_ns() < until_ns) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void Reader::enable() {
  if (listener_) listener_->start();
  if (kind_ == Kind::client) return;  // its writer looks for the server
  const std::string address = socket_->listen(context_.meeting().new_address());
  announcement_ = context_.meeting().announce(endpoint_.topic, context_.meeting().facts(endpoint_, address));
  context_.meeting().knock(endpoint_.topic);
}

void Reader::join_waitset() {
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_WAITSET) return;
  throw Error(LAGOMETER_INVALID, "nng: a reader in a waitset has dispatch by waitset");
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  const auto place = std::find(places_.begin(), places_.end(), nullptr);
  if (max == 0 || place == places_.end()) return LAGOMETER_OK;
  Noticed noticed;
  Message message = listener_ ? listener_->take(noticed) : receive();
  if (!message) return LAGOMETER_OK;
  const uint64_t bytes = nng_msg_len(message.get());
  endpoint_.type.check(bytes);
  lagometer_sample& sample = sample_at(samples, stride, 0);
  brokerless::show(sample, nng_msg_body(message.get()), bytes, true);
  sample.signalled_ns = noticed.at_ns;
  sample.signalled_cpu = noticed.cpu;
  sample.adapter_data = &*place;
  *place = std::move(message);
  taken = 1;
  return LAGOMETER_OK;
}

/// Nothing if there is no message.
Message Reader::receive() {
  nng_msg* came = nullptr;
  const int error = nng_recvmsg(socket_->get(), &came, static_cast<int>(NNG_FLAG_NONBLOCK));
  if (error == 0) return Message(came);
  if (error == NNG_EAGAIN) return nullptr;
  throw_nng_error(error, "receiving on '" + endpoint_.topic + "'");
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number)
    static_cast<Message*>(sample_at(samples, stride, number).adapter_data)->reset();
}

void Reader::matched(lagometer_matched& out) const noexcept {
  out.count = socket_->connections();
  out.exact = 0;
}

}  // namespace lagometer::nng
