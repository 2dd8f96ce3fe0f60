// SPDX-License-Identifier: Apache-2.0
#include "stream_writer.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "stream_family.hpp"
#include "stream_reader.hpp"

namespace lagometer::sockets {

StreamWriter::StreamWriter(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      frame_(line_bytes + endpoint_.type.bytes_max),
      connections_(context_, endpoint_) {}

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
  const uint64_t bytes = sizeof(FrameLength) + message.regions[0].size;
  return connections_.send_to_all(
      [&](Stream& stream) { return send_frame(stream, frame_.data() + frame_start, bytes); });
}

bool StreamWriter::send_frame(Stream& stream, const uint8_t* frame, uint64_t bytes) {
  if (!finish_rest(stream)) return false;
  uint64_t sent = 0;
  while (sent < bytes && stream.live.load(std::memory_order_relaxed)) {
    sent += send_some(stream, frame + sent, bytes - sent);
    if (sent == bytes) break;
    // Best effort rejects a frame that it can't begin. A frame that was begun is completed, whatever the reliability.
    if (sent == 0 && !endpoint_.reliable) return false;
    if (wait_writable(stream)) continue;
    if (sent == 0) return false;
    stream.rest_begin = 0;
    stream.rest_end = bytes - sent;
    std::memcpy(stream.rest.data(), frame + sent, bytes - sent);
    break;
  }
  return true;
}

bool StreamWriter::finish_rest(Stream& stream) {
  while (stream.rest_begin < stream.rest_end && stream.live.load(std::memory_order_relaxed)) {
    stream.rest_begin += send_some(stream, stream.rest.data() + stream.rest_begin, stream.rest_end - stream.rest_begin);
    if (stream.rest_begin == stream.rest_end) break;
    if (!endpoint_.reliable || !wait_writable(stream)) return false;
  }
  return true;
}

uint64_t StreamWriter::send_some(Stream& stream, const uint8_t* data, uint64_t bytes) noexcept {
  const ssize_t sent = send(stream.socket.get(), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return static_cast<uint64_t>(sent);
  // Any error but a full socket means that the subscriber is gone, which is not this publisher's error.
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR && errno != ENOBUFS) {
    stream.live.store(false, std::memory_order_relaxed);
  }
  return 0;
}

bool StreamWriter::wait_writable(const Stream& stream) {
  constexpr int64_t second_ns = 1'000'000'000;
  const int64_t now = now_ns();
  if (until_ns_ == 0) until_ns_ = floor::later(now, endpoint_.blocking_ns_max);
  if (now >= until_ns_) return false;
  const int64_t left_ns = until_ns_ - now;
  const timespec timeout{.tv_sec = left_ns / second_ns, .tv_nsec = left_ns % second_ns};
  pollfd writable{.fd = stream.socket.get(), .events = POLLOUT, .revents = 0};
  return ppoll(&writable, 1, &timeout, nullptr) != 0;
}

void StreamWriter::matched(lagometer_matched& out) {
  connections_.look(out, [this](Stream& stream, const nlohmann::json& facts) {
    stream.socket = connect_stream(context_, facts.at("address").get<std::string>(), stream.default_sizes);
    stream.rest = AlignedBuffer(sizeof(FrameLength) + endpoint_.type.bytes_max);
    return stream.socket.valid();
  });
}

}  // namespace lagometer::sockets
