// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <nng/protocol/pubsub0/pub.h>

namespace lagometer::nng {

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      socket_(&nng_pub0_open),
      subscribers_(context_.meeting(), endpoint_) {
  const auto messages = queue_messages(context_.choices().send_buffer_messages, endpoint_);
  if (messages) socket_.set(NNG_OPT_SENDBUF, "NNG_OPT_SENDBUF", *messages);
  description_ = socket_.describe();
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
  subscribers_.look(connect, &Socket::disconnect);
}

}  // namespace lagometer::nng
