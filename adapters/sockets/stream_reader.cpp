// SPDX-License-Identifier: Apache-2.0
#include "stream_reader.hpp"

#include <sys/socket.h>

namespace lagometer::sockets {

StreamReader::StreamReader(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context), endpoint_(Type::endpoint(config)) {}

StreamReader::~StreamReader() {
  announcement_ = {};
  if (door_) {
    door_set_->forget(door_->socket.get());
    door_set_->leave(door_slot_);
    if (!door_->remove_path.empty()) unlink(door_->remove_path.c_str());
  }
  if (data_set_ && data_set_ != door_set_) data_set_->leave(data_slot_);
}

void StreamReader::attach(std::shared_ptr<EpollSet> waitset) {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_WAITSET || door_) {
    throw Error(LAGOMETER_INVALID,
                std::string(abilities.adapter) +
                    ": a reader is attached to a waitset before it is enabled, with dispatch by waitset");
  }
  data_slot_ = waitset->join(*this);
  data_set_ = std::move(waitset);
}

void StreamReader::enable() {
  door_set_ = context_.served_set();
  door_slot_ = door_set_->join(*this);
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
    data_set_ = door_set_;
    data_slot_ = door_slot_;
  }
  door_ = bind_stream(context_);
  default_sizes_ = context_.size_buffers(door_->socket.get());
  if (listen(door_->socket.get(), backlog) != 0)
    throw_system_error("listening for publishers of '" + endpoint_.topic + "'");
  enabled_.store(true, std::memory_order_release);
  door_set_->watch(door_->socket.get(), door_slot_, door);
  auto facts = endpoint_.facts();
  facts["address"] = door_->address;
  announcement_ = context_.announce(endpoint_.topic, facts);
}

void StreamReader::accept_all() {
  for (;;) {
    Descriptor socket(accept4(door_->socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return;
    uint32_t index = 0;
    while (index < sources_max && (*sources_)[index].state() != StreamSource::State::free) ++index;
    if (index == sources_max) {
      throw Error(LAGOMETER_NO_RESOURCE, "a subscriber of '" + endpoint_.topic + "' has " +
                                             std::to_string(sources_max) + " publishers, the most there can be");
    }
    StreamSource& source = (*sources_)[index];
    source.open(std::move(socket), endpoint_.type);
    if (index >= sources_end_.load(std::memory_order_relaxed)) sources_end_.store(index + 1, std::memory_order_release);
    if (data_set_) data_set_->watch(source.socket(), data_slot_, index);
  }
}

void StreamReader::readable(uint32_t tag) noexcept {
  if (!enabled_.load(std::memory_order_acquire)) return;
  if (tag == door) {
    static_cast<void>(guarded([this] {
      accept_all();
      return LAGOMETER_OK;
    }));
    return;
  }
  StreamSource& source = (*sources_)[tag];
  source.woken.store(true, std::memory_order_relaxed);
  source.ready.store(true, std::memory_order_relaxed);
  marks_fresh_.store(true, std::memory_order_relaxed);
  news_ = true;
}

void StreamReader::deliver(int64_t woken_ns, uint32_t cpu) noexcept {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_LISTENER || !news_) return;
  news_ = false;
  woken_ns_ = woken_ns;
  woken_cpu_ = cpu;
  listening_ = true;
  uint64_t before = 0;
  do {  // repeated while the listener makes progress: data already read does not wake the thread again
    before = taken_total_;
    endpoint_.on_data(endpoint_.user);
  } while (taken_total_ != before);
  listening_ = false;
}

lagometer_status StreamReader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  const bool fresh = marks_fresh_.load(std::memory_order_relaxed);
  const bool only_ready = fresh || left_count_ != 0;
  const uint32_t end = sources_end_.load(std::memory_order_acquire);
  // Stops at the first publisher that has a message: it is delivered before the next system call.
  for (uint32_t step = 0; step < end && taken == 0; ++step) {
    next_source_ = next_source_ + 1 < end ? next_source_ + 1 : 0;
    StreamSource& source = (*sources_)[next_source_];
    if (source.state() != StreamSource::State::live || !fetch(source, only_ready)) continue;
    for (; taken < max && source.has_frame(); ++taken) {
      lagometer_sample& sample = sample_at(samples, stride, taken);
      source.show_frame(sample);
      sample.writer_id = next_source_ + 1;
      sample.middleware_sequence = 0;
      sample.source_time_ns = sample.reception_time_ns = 0;
      sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
      sample.signalled_cpu = listening_ ? woken_cpu_ : 0;
      sample.reserved = 0;
      sample.adapter_data = &source;
    }
    count_left(source);
  }
  // The marks are used up: a take without a wait checks every socket.
  if (taken == 0 && fresh) marks_fresh_.store(false, std::memory_order_relaxed);
  taken_total_ += taken;
  return LAGOMETER_OK;
}

bool StreamReader::fetch(StreamSource& source, bool only_ready) {
  while (!source.has_frame()) {
    if (only_ready && !source.ready.load(std::memory_order_relaxed)) return false;
    const auto result = source.fill(listening_ ? woken_ns_ : 0);
    if (result == StreamSource::Fill::ended) source.end(data_set_.get());
    if (result != StreamSource::Fill::some) return false;
    source.check_frame(endpoint_.type);
  }
  return true;
}

void StreamReader::count_left(StreamSource& source) noexcept {
  const bool left = source.has_frame();
  if (left == source.counted_as_left) return;
  source.counted_as_left = left;
  left_count_ = left ? left_count_ + 1 : left_count_ - 1;
  buffered_.store(left_count_ != 0, std::memory_order_release);
}

void StreamReader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    static_cast<StreamSource*>(sample_at(samples, stride, number).adapter_data)->give_back();
  }
}

void StreamReader::matched(lagometer_matched& out) const noexcept {
  out.count = 0;
  out.exact = 0;
  for (uint32_t index = 0; index < sources_end_.load(std::memory_order_acquire); ++index) {
    if ((*sources_)[index].state() == StreamSource::State::live) ++out.count;
  }
}

std::string StreamReader::describe() const {
  return describe_socket(door_ ? buffer_sizes(door_->socket.get()) : default_sizes_, default_sizes_, true);
}

}  // namespace lagometer::sockets
