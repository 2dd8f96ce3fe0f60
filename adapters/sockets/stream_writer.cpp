// SPDX-License-Identifier: Apache-2.0
#include "stream_writer.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "stream_family.hpp"
#include "stream_reader.hpp"

namespace lagometer::sockets {

StreamWriter::StreamWriter(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context), endpoint_(parse_endpoint(config)), frame_(line_bytes + endpoint_.type.bytes_max) {}

lagometer_status StreamWriter::borrow(uint64_t bytes, lagometer_message& message) const {
  endpoint_.type.check(bytes);
  const auto length = static_cast<FrameLength>(bytes);
  std::memcpy(frame_.data() + frame_start, &length, sizeof length);
  message.origin = LAGOMETER_ORIGIN_COPIED;
  message.region_count = 1;
  message.regions[0] = {frame_.data() + line_bytes, bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status StreamWriter::commit(const lagometer_message& message) {
  until_ns_ = 0;
  bool refused = false;
  const uint32_t count = connections_.size();
  for (uint32_t index = 0; index < count; ++index) {
    Connection& connection = connections_[index];
    if (!connection.live.load(std::memory_order_relaxed)) continue;
    const uint64_t bytes = sizeof(FrameLength) + message.regions[0].size;
    refused = send_frame(connection, frame_.data() + frame_start, bytes) == Outcome::refused || refused;
  }
  if (!refused) return LAGOMETER_OK;
  rejected_.fetch_add(1, std::memory_order_relaxed);
  return LAGOMETER_REJECTED;
}

StreamWriter::Outcome StreamWriter::send_frame(Connection& connection, const uint8_t* frame, uint64_t bytes) {
  if (!finish_rest(connection)) return Outcome::refused;
  uint64_t sent = 0;
  while (sent < bytes && connection.live.load(std::memory_order_relaxed)) {
    sent += send_some(connection, frame + sent, bytes - sent);
    if (sent == bytes) break;
    // Best effort refuses what it cannot begin. What was begun is ended, whatever the reliability.
    if (sent == 0 && !endpoint_.reliable) return Outcome::refused;
    if (wait_writable(connection)) continue;
    if (sent == 0) return Outcome::refused;
    connection.rest_begin = 0;
    connection.rest_end = bytes - sent;
    std::memcpy(connection.rest.data(), frame + sent, bytes - sent);
    break;
  }
  return Outcome::sent;
}

bool StreamWriter::finish_rest(Connection& connection) {
  while (connection.rest_begin < connection.rest_end && connection.live.load(std::memory_order_relaxed)) {
    connection.rest_begin += send_some(connection, connection.rest.data() + connection.rest_begin,
                                       connection.rest_end - connection.rest_begin);
    if (connection.rest_begin == connection.rest_end) break;
    if (!endpoint_.reliable || !wait_writable(connection)) return false;
  }
  return true;
}

uint64_t StreamWriter::send_some(Connection& connection, const uint8_t* data, uint64_t bytes) noexcept {
  const ssize_t sent = send(connection.socket.get(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<uint64_t>(sent);
  // Anything but a full socket means that the subscriber has gone, which is no error of this publisher.
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOBUFS) {
    connection.live.store(false, std::memory_order_relaxed);
  }
  return 0;
}

bool StreamWriter::wait_writable(Connection& connection) {
  constexpr int64_t second_ns = 1'000'000'000;
  const int64_t now = now_ns();
  if (until_ns_ == 0) until_ns_ = floor::later(now, endpoint_.blocking_ns_max);
  if (now >= until_ns_) return false;
  const int64_t left_ns = until_ns_ - now;
  const timespec timeout{.tv_sec = left_ns / second_ns, .tv_nsec = left_ns % second_ns};
  pollfd writable{.fd = connection.socket.get(), .events = POLLOUT, .revents = 0};
  return ppoll(&writable, 1, &timeout, nullptr) != 0;
}

void StreamWriter::matched(lagometer_matched& out) {
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

void StreamWriter::connect(rendezvous::Found& found) {
  std::string why = endpoint_.mismatch(found.facts);
  if (connections_.full()) why = "this publisher has had 256 subscribers, the most there can be";
  if (!why.empty()) {
    refused_names_.push_back(found.name);
    return endpoint_.refuse(why, refused_names_.size());
  }
  auto connection = std::make_unique<Connection>();
  connection->socket =
      connect_stream(context_, found.facts.at("address").get<std::string>(), connection->default_sizes);
  if (!connection->socket.valid()) return;  // it went while it was looked at
  connection->name = found.name;
  connection->announcement = std::move(found.file);
  connection->rest = AlignedBuffer(sizeof(FrameLength) + endpoint_.type.bytes_max);
  connections_.append(std::move(connection));
}

void StreamWriter::counters(lagometer_counters& out) const noexcept {
  out.present = LAGOMETER_COUNTER_REJECTED;
  out.rejected = rejected_.load(std::memory_order_relaxed);
}

std::string StreamWriter::describe() const {
  if (connections_.size() == 0) return describe_socket({}, {}, false);
  return describe_socket(buffer_sizes(connections_[0].socket.get()), connections_[0].default_sizes, false);
}

}  // namespace lagometer::sockets
