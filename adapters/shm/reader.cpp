// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <sched.h>

#include <bit>
#include <new>

namespace lagometer::shm {

namespace {

/// What a sample carries from take to release: the place and the slot.
void* pack(uint32_t place, uint32_t slot) noexcept {
  // Two numbers in place of a pointer, never dereferenced. NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>((static_cast<uintptr_t>(place) << 32U) | slot);
}

}  // namespace

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context), endpoint_(Type::endpoint(config)), queue_limit_(context_.queue_limit(endpoint_)) {}

Reader::~Reader() {
  if (served_by_ != nullptr) served_by_->remove(served_slot_);
  announcement_.reset();
  if (inbox_ == nullptr) return;
  inbox_->closed.store(1, std::memory_order_seq_cst);
  for (uint32_t index = 0; index < connections_max; ++index) {
    if (sources_[index].pool != nullptr) sources_[index].pool->room.ring();
  }
  segment_->unlink();
}

uint32_t Reader::attach(std::shared_ptr<Readers> waitset, std::shared_ptr<Segment> bell) {
  if (endpoint_.dispatch != LAGOMETER_DISPATCH_WAITSET || inbox_ != nullptr) {
    throw Error(LAGOMETER_INVALID,
                "shm: a reader is attached to a waitset before it is enabled, with dispatch by waitset");
  }
  bell_ = std::move(bell);
  served_slot_ = waitset->add(*this);
  served_by_ = std::move(waitset);
  return served_slot_;
}

void Reader::enable() {
  const uint64_t entries = std::bit_ceil(uint64_t{queue_limit_});
  segment_ = Segment::make(context_.new_path("i"), Inbox::bytes(entries));
  inbox_ = new (segment_->data()) Inbox{};
  inbox_->ring_entries = entries;
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) {
    bell_ = context_.listener_bell();
    served_by_ = context_.listeners();
    served_slot_ = served_by_->add(*this);
  }
  auto facts = endpoint_.facts();
  facts["inbox"] = segment_->path();
  facts["queue_limit"] = queue_limit_;
  if (bell_) facts["bell"] = bell_->path();
  announcement_.emplace(context_.topic_folder(endpoint_.topic), facts);
}

bool Reader::open_source(Place& place, Source& source) {
  const std::scoped_lock lock(sources_mutex_);
  try {
    source.segment = Segment::open(place.pool_path.data(), sizeof(Pool));
  } catch (const Error&) {
    // A writer that came and left before it was examined has removed its file.
    if (place.state.load(std::memory_order_acquire) != place_closed) throw;
    source.noticed.store(0, std::memory_order_relaxed);  // otherwise the next writer's queue would seem to hold as much
    place.state.store(place_free, std::memory_order_release);
    return false;
  }
  source.pool = reinterpret_cast<Pool*>(source.segment->data());
  return true;
}

void Reader::close_source(Place& place, Source& source) noexcept {
  const std::scoped_lock lock(sources_mutex_);
  overwritten_by_gone_ += place.overwritten.load(std::memory_order_relaxed);
  source.pool = nullptr;
  source.segment.reset();
  source.noticed.store(0, std::memory_order_relaxed);
  place.state.store(place_free, std::memory_order_release);
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  if (inbox_ == nullptr) return LAGOMETER_OK;
  const uint32_t end = inbox_->places_end.load(std::memory_order_acquire);
  for (uint32_t step = 0; step < end && taken < max; ++step) {
    next_place_ = next_place_ + 1 < end ? next_place_ + 1 : 0;  // in turn, so that no writer starves another
    Place& place = inbox_->places[next_place_];
    Source& source = sources_[next_place_];
    const uint32_t state = place.state.load(std::memory_order_acquire);
    if (state < place_open) continue;
    if (source.pool == nullptr && !open_source(place, source)) continue;
    take_from(next_place_, samples, stride, max, taken);
    if (state == place_closed && source.held == 0 && place.queue.empty()) close_source(place, source);
  }
  taken_total_ += taken;
  return LAGOMETER_OK;
}

void Reader::take_from(uint32_t index, lagometer_sample* samples, uint32_t stride, uint32_t max,
                       uint32_t& taken) noexcept {
  Place& place = inbox_->places[index];
  Source& source = sources_[index];
  // The acquiring load makes visible what the writer put into the slots before it moved the tail. Inside the listener,
  // only messages that existed when the thread looked are taken, so that its time is never before the publishing.
  uint64_t end = place.queue.tail.load(std::memory_order_acquire);
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER) end = source.noticed.load(std::memory_order_relaxed);
  uint32_t slot = 0;
  while (taken < max && source.held < source.pool->held_max &&
         place.queue.pop(inbox_->ring(index), inbox_->ring_mask(), end, slot)) {
    show(sample_at(samples, stride, taken), index, slot);
    ++source.held;
    ++taken;
    if (place.back_pressure != 0) source.pool->room.ring();
  }
}

void Reader::show(lagometer_sample& sample, uint32_t index, uint32_t slot) noexcept {
  Pool& pool = *sources_[index].pool;
  Slot& message = pool.slot(slot);
  sample.flags = LAGOMETER_SAMPLE_LOANED;
  sample.region_count = 1;
  sample.regions[0] = {message.payload(), message.bytes};
  sample.writer_id = pool.writer_id;
  sample.middleware_sequence = message.sequence;
  sample.source_time_ns = sample.reception_time_ns = 0;
  sample.source_clock = sample.reception_clock = LAGOMETER_CLOCK_NONE;
  sample.signalled_ns = listening_ ? signalled_ns_ : 0;
  sample.signalled_cpu = listening_ ? signalled_cpu_ : 0;
  sample.reserved = 0;
  sample.adapter_data = pack(index, slot);
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    const auto data = reinterpret_cast<uintptr_t>(sample_at(samples, stride, number).adapter_data);
    const auto index = static_cast<uint32_t>(data >> 32U);
    Source& source = sources_[index];
    // Releases: the slot was read before the writer may write to it again.
    source.pool->slot(static_cast<uint32_t>(data))
        .holders.fetch_and(~(1ULL << inbox_->places[index].holder_bit), std::memory_order_release);
    --source.held;
  }
}

bool Reader::has_data() const noexcept {
  if (inbox_ == nullptr) return false;
  const uint32_t end = inbox_->places_end.load(std::memory_order_seq_cst);
  for (uint32_t index = 0; index < end; ++index) {
    const Place& place = inbox_->places[index];
    if (place.state.load(std::memory_order_acquire) >= place_open && !place.queue.empty()) return true;
  }
  return false;
}

bool Reader::has_news() const noexcept {
  const uint32_t end = inbox_->places_end.load(std::memory_order_seq_cst);
  for (uint32_t index = 0; index < end; ++index) {
    const Place& place = inbox_->places[index];
    if (place.state.load(std::memory_order_acquire) < place_open) continue;
    if (place.queue.tail.load(std::memory_order_seq_cst) != sources_[index].noticed.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

uint32_t Reader::notice() noexcept {
  uint32_t news = 0;
  const uint32_t end = inbox_->places_end.load(std::memory_order_acquire);
  for (uint32_t index = 0; index < end; ++index) {
    const Place& place = inbox_->places[index];
    if (place.state.load(std::memory_order_acquire) < place_open) continue;
    const uint64_t tail = place.queue.tail.load(std::memory_order_acquire);
    if (sources_[index].noticed.exchange(tail, std::memory_order_relaxed) != tail) ++news;
  }
  return news;
}

bool Reader::notify_listener() noexcept {
  if (notice() == 0) return false;
  signalled_ns_ = now_ns();  // after the look, so never before a publishing that it saw
  signalled_cpu_ = static_cast<uint32_t>(sched_getcpu());
  listening_ = true;
  uint64_t before = 0;
  do {  // repeated while a listener that takes a few at a time makes progress
    before = taken_total_;
    endpoint_.on_data(endpoint_.user);
  } while (taken_total_ != before && has_data());
  listening_ = false;
  return true;
}

void Reader::matched(lagometer_matched& out) {
  out.count = 0;
  out.exact = 0;
  if (inbox_ == nullptr) return;
  const std::scoped_lock lock(sources_mutex_);
  for (uint32_t index = 0; index < connections_max; ++index) {
    Place& place = inbox_->places[index];
    const Source& source = sources_[index];
    if (place.state.load(std::memory_order_acquire) != place_open) continue;
    if (source.segment && !source.segment->maker_alive()) {
      uint32_t open = place_open;
      place.state.compare_exchange_strong(open, place_closed);  // on behalf of a writer that was killed
    } else {
      ++out.count;
    }
  }
}

void Reader::counters(lagometer_counters& out) {
  const std::scoped_lock lock(sources_mutex_);
  out.present = LAGOMETER_COUNTER_OVERWRITTEN;
  out.overwritten = overwritten_by_gone_;
  for (uint32_t index = 0; inbox_ != nullptr && index < connections_max; ++index) {
    const Place& place = inbox_->places[index];
    if (place.state.load(std::memory_order_acquire) >= place_open)
      out.overwritten += place.overwritten.load(std::memory_order_relaxed);
  }
}

}  // namespace lagometer::shm
