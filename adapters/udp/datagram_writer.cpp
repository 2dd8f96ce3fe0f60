// SPDX-License-Identifier: Apache-2.0
#include "datagram_writer.hpp"

#include <sys/socket.h>

#include "internet.hpp"

namespace lagometer::sockets {

DatagramWriter::DatagramWriter(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      payload_(endpoint_.type.bytes_max),
      connections_(context_, endpoint_) {}

lagometer_status DatagramWriter::borrow(uint64_t bytes, lagometer_message& message) const {
  endpoint_.type.check(bytes);
  message.origin = LAGOMETER_ORIGIN_COPIED;
  message.region_count = 1;
  message.regions[0] = {payload_.data(), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status DatagramWriter::commit(const lagometer_message& message) {
  return connections_.send_to_all([&](Connection& connection) { return send_to(connection, message.regions[0]); });
}

bool DatagramWriter::send_to(Connection& connection, const lagometer_region& payload) noexcept {
  // Twice, because an error may come from an earlier datagram: then this one was not tried.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (send(connection.socket.get(), payload.data, payload.size, MSG_DONTWAIT) >= 0) return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return false;
    if (errno == ECONNREFUSED) connection.refused();
    connection.look_after();
  }
  return !connection.live.load(std::memory_order_relaxed);
}

void DatagramWriter::matched(lagometer_matched& out) {
  connections_.look(out, [this](Connection& connection, const nlohmann::json& facts) {
    connection.socket = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection.socket.valid()) throw_system_error("making a UDP socket");
    connection.default_sizes = context_.size_buffers(connection.socket.get());
    const auto address = facts.at("address").get<std::string>();
    const sockaddr_in peer = internet::end_from(address);
    if (connect(connection.socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
      throw_system_error("connecting a UDP socket to " + address);
    }
    return true;
  });
}

}  // namespace lagometer::sockets
