// SPDX-License-Identifier: Apache-2.0
#include "datagram_reader.hpp"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include "internet.hpp"

namespace lagometer::sockets {

DatagramReader::DatagramReader(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      buffer_bytes_((endpoint_.type.bytes_max + line_bytes - 1) / line_bytes * line_bytes),
      memory_(buffer_bytes_ * buffers) {}

DatagramReader::~DatagramReader() {
  announcement_ = {};
  if (!set_) return;
  if (socket_.valid()) set_->forget(socket_.get());
  set_->leave(slot_);
}

void DatagramReader::attach(std::shared_ptr<EpollSet> waitset) {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_WAITSET || socket_.valid()) {
    throw Error(LAGOMETER_INVALID,
                "udp: a reader is attached to a waitset before it is enabled, with dispatch by waitset");
  }
  slot_ = waitset->join(*this);
  set_ = std::move(waitset);
}

void DatagramReader::enable() {
  socket_ = Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.valid()) throw_system_error("making a UDP socket");
  default_sizes_ = context_.size_buffers(socket_.get());
  sockaddr_in address = context_.own_end();
  socklen_t size = sizeof address;
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("binding a UDP socket to " + internet::text_of(context_.own_end()));
  }
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
    set_ = context_.served_set();
    slot_ = set_->join(*this);
  }
  enabled_.store(true, std::memory_order_release);
  if (set_) set_->watch(socket_.get(), slot_, 0);
  auto facts = endpoint_.facts();
  facts["address"] = internet::text_of(address);
  announcement_ = context_.announce(endpoint_.topic, facts);
}

void DatagramReader::readable(uint32_t) noexcept { news_ = enabled_.load(std::memory_order_acquire); }

void DatagramReader::deliver(int64_t woken_ns, uint32_t cpu) noexcept {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_LISTENER || !news_) return;
  news_ = false;
  woken_ns_ = woken_ns;
  woken_cpu_ = cpu;
  first_since_woken_ = true;
  listening_ = true;
  endpoint_.on_data(endpoint_.user);  // messages that it leaves in the socket wake the thread again
  listening_ = false;
}

lagometer_status DatagramReader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (max == 0 || !find_free_buffer()) return LAGOMETER_OK;
  const ssize_t got = recv(socket_.get(), buffer(buffer_index_), endpoint_.type.bytes_max, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return LAGOMETER_OK;  // nothing there; a socket error shows up as missing messages
  endpoint_.type.check(static_cast<uint64_t>(got));
  lagometer_sample& sample = sample_at(samples, stride, 0);
  sample.flags = 0;
  sample.region_count = 1;
  sample.regions[0] = {buffer(buffer_index_), static_cast<uint64_t>(got)};
  sample.writer_id = sample.middleware_sequence = 0;
  sample.source_time_ns = sample.reception_time_ns = 0;
  sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = 0;
  sample.signalled_cpu = 0;
  if (listening_) {  // the first one woke the thread; others are noticed when they are read
    sample.signalled_ns = first_since_woken_ ? woken_ns_ : now_ns();
    sample.signalled_cpu = woken_cpu_;
    first_since_woken_ = false;
  }
  sample.reserved = 0;
  sample.adapter_data = &held_[buffer_index_];
  held_[buffer_index_] = true;
  taken = 1;
  return LAGOMETER_OK;
}

bool DatagramReader::find_free_buffer() noexcept {
  // From the start: recently used memory is still in the caches.
  for (buffer_index_ = 0; buffer_index_ < buffers; ++buffer_index_) {
    if (!held_[buffer_index_]) return true;
  }
  return false;
}

void DatagramReader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    *static_cast<bool*>(sample_at(samples, stride, number).adapter_data) = false;
  }
}

void DatagramReader::matched(lagometer_matched& out) const noexcept {
  out.count = 0;
  out.exact = 2;  // a datagram socket does not know who sends to it
}

void DatagramReader::counters(lagometer_counters& out) const {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t size = sizeof values;
  out.present = 0;
  if (!socket_.valid() || getsockopt(socket_.get(), SOL_SOCKET, SO_MEMINFO, values.data(), &size) != 0) return;
  out.present = LAGOMETER_COUNTER_LOST;
  out.lost = values[SK_MEMINFO_DROPS];  // datagrams that found this socket's buffer full
}

std::string DatagramReader::describe() const {
  return describe_socket(socket_.valid() ? buffer_sizes(socket_.get()) : default_sizes_, default_sizes_, true);
}

}  // namespace lagometer::sockets
