// SPDX-License-Identifier: Apache-2.0
#include "datagram_writer.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "loopback.hpp"

namespace lagometer::sockets {

DatagramWriter::DatagramWriter(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context), endpoint_(parse_endpoint(config)), payload_(endpoint_.type.bytes_max) {}

lagometer_status DatagramWriter::borrow(uint64_t bytes, lagometer_message& message) const {
  endpoint_.type.check(bytes);
  message.origin = LAGOMETER_ORIGIN_COPIED;
  message.region_count = 1;
  message.regions[0] = {payload_.data(), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status DatagramWriter::commit(const lagometer_message& message) noexcept {
  bool refused = false;
  const uint32_t count = connections_.size();
  for (uint32_t index = 0; index < count; ++index) {
    Connection& connection = connections_[index];
    if (connection.live.load(std::memory_order_relaxed)) refused = !send_to(connection, message.regions[0]) || refused;
  }
  if (!refused) return LAGOMETER_OK;
  rejected_.fetch_add(1, std::memory_order_relaxed);
  return LAGOMETER_REJECTED;
}

bool DatagramWriter::send_to(Connection& connection, const lagometer_region& payload) noexcept {
  // Twice, since an error may be what became of an earlier datagram: then this one was not tried.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (send(connection.socket.get(), payload.data, payload.size, MSG_DONTWAIT) >= 0) return true;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return false;
    if (!rendezvous::locked_by_other(connection.announcement.get()))
      connection.live.store(false, std::memory_order_relaxed);
  }
  return !connection.live.load(std::memory_order_relaxed);
}

void DatagramWriter::matched(lagometer_matched& out) {
  const std::scoped_lock lock(connect_mutex_);
  const auto known = [this](const std::string& name) {
    for (uint32_t index = 0; index < connections_.size(); ++index) {
      if (connections_[index].name == name) return true;
    }
    return std::find(refused_names_.begin(), refused_names_.end(), name) != refused_names_.end();
  };
  for (auto& found : rendezvous::scan(context_.topic_folder(endpoint_.topic), known)) connect(found);
  out.count = 0;
  out.exact = 0;
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (!rendezvous::locked_by_other(connection.announcement.get()))
      connection.live.store(false, std::memory_order_relaxed);
    if (connection.live.load(std::memory_order_relaxed)) ++out.count;
  }
}

void DatagramWriter::connect(rendezvous::Found& found) {
  std::string why = endpoint_.mismatch(found.facts);
  if (connections_.full()) why = "this publisher has had 256 subscribers, the most there can be";
  if (!why.empty()) {
    refused_names_.push_back(found.name);
    return endpoint_.refuse(why, refused_names_.size());
  }
  auto connection = std::make_unique<Connection>();
  connection->socket = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!connection->socket.valid()) throw_system_error("making a UDP socket");
  connection->default_sizes = context_.size_buffers(connection->socket.get());
  const sockaddr_in peer = loopback(found.facts.at("port").get<uint16_t>());
  if (::connect(connection->socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
    throw_system_error("connecting a UDP socket to 127.0.0.1");
  }
  connection->name = found.name;
  connection->announcement = std::move(found.file);
  connections_.append(std::move(connection));
}

void DatagramWriter::counters(lagometer_counters& out) const noexcept {
  out.present = LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

std::string DatagramWriter::describe() const {
  if (connections_.size() == 0) return describe_socket({}, {}, false);
  return describe_socket(buffer_sizes(connections_[0].socket.get()), connections_[0].default_sizes, false);
}

}  // namespace lagometer::sockets
