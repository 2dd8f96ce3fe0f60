// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "stream_reader.hpp"

namespace lagometer::sockets {

namespace {

/// Small frames are read many at a time, up to this; at the largest size a read ends where a frame ends.
constexpr uint64_t read_bytes = 64ULL << 10;

}  // namespace

void StreamSource::open(Descriptor socket, const PayloadType& type) {
  const uint64_t frame_bytes = sizeof(FrameLength) + type.bytes_max;
  const uint64_t bytes = frame_start + std::max<uint64_t>(1, read_bytes / frame_bytes) * frame_bytes;
  if (buffer_.bytes() != bytes) buffer_ = AlignedBuffer(bytes);
  socket_ = std::move(socket);
  begin_ = end_ = frame_start;
  noticed_ns_ = 0;
  ready.store(true, std::memory_order_relaxed);
  woken.store(false, std::memory_order_relaxed);
  state_.store(State::live, std::memory_order_release);  // publishes the above
}

FrameLength StreamSource::frame_length() const noexcept {
  FrameLength length = 0;
  std::memcpy(&length, buffer_.data() + begin_, sizeof length);
  return length;
}

bool StreamSource::has_frame() const noexcept {
  return filled() >= sizeof(FrameLength) && filled() >= sizeof(FrameLength) + frame_length();
}

void StreamSource::check_frame(const PayloadType& type) const {
  if (filled() >= sizeof(FrameLength)) type.check(frame_length());
}

StreamSource::Fill StreamSource::fill(int64_t woken_ns) {
  if (filled() == 0 && shown_ == 0) begin_ = end_ = frame_start;
  const uint64_t wanted = sizeof(FrameLength) + (filled() >= sizeof(FrameLength) ? frame_length() : 0);
  if (begin_ + wanted > buffer_.bytes()) {
    if (shown_ != 0) return Fill::nothing;  // frames in use must not move
    std::memmove(buffer_.data() + frame_start, buffer_.data() + begin_, filled());
    end_ = frame_start + filled();
    begin_ = frame_start;
  }
  const uint64_t room = buffer_.bytes() - end_;
  const ssize_t got = recv(socket_.get(), buffer_.data() + end_, room, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
    ready.store(false, std::memory_order_relaxed);
    return Fill::nothing;
  }
  if (got <= 0) return Fill::ended;
  if (woken_ns != 0) {
    // The first bytes since the thread woke are those that woke it. This read noticed any later ones.
    const bool first = woken.exchange(false, std::memory_order_relaxed);
    last_fill_ns_ = now_ns();
    if (filled() == 0) noticed_ns_ = first ? woken_ns : last_fill_ns_;
  }
  end_ += static_cast<uint64_t>(got);
  if (static_cast<uint64_t>(got) < room) ready.store(false, std::memory_order_relaxed);
  return Fill::some;
}

void StreamSource::show_frame(lagometer_sample& sample) noexcept {
  const FrameLength length = frame_length();
  sample.flags = 0;
  sample.region_count = 1;
  sample.regions[0] = {buffer_.data() + begin_ + sizeof(FrameLength), length};
  sample.signalled_ns = noticed_ns_;
  begin_ += sizeof(FrameLength) + length;
  noticed_ns_ = filled() != 0 ? last_fill_ns_ : 0;
  ++shown_;
}

void StreamSource::give_back() noexcept {
  --shown_;
  if (shown_ == 0 && state() == State::ended) state_.store(State::free, std::memory_order_release);
}

void StreamSource::end(EpollSet* set) noexcept {
  if (set != nullptr) set->forget(socket_.get());
  socket_.reset();
  state_.store(shown_ == 0 ? State::free : State::ended, std::memory_order_release);
}

}  // namespace lagometer::sockets
