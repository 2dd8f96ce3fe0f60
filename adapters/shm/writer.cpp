// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace lagometer::shm {

namespace {

/// How many samples one reader may hold at a time, and how many readers may do so before slots run out.
constexpr uint32_t held_small = 8;
constexpr uint32_t held_large = 2;
constexpr uint64_t large_bytes = 64ULL << 10;
constexpr uint32_t holding_readers = 4;
/// Slots that are tried first: recently used memory is still in the caches.
constexpr uint32_t warm_slots = 8;

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      queue_limit_(context_.queue_limit(endpoint_)),
      held_max_(endpoint_.type.bytes_max >= large_bytes ? held_large : held_small),
      // A queue holds some of the last `queue_limit` messages, so these, those that readers hold, and the one being
      // written.
      slots_(queue_limit_ + held_max_ * holding_readers + 1) {}

Writer::~Writer() {
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    uint32_t open = place_open;
    connections_[index].place->state.compare_exchange_strong(open, place_closed);
  }
  if (segment_) segment_->unlink();
}

void Writer::enable() {
  const uint64_t slot_bytes = Pool::slot_bytes_for(endpoint_.type.bytes_max);
  const std::string path = context_.new_path("p");
  if (path.size() >= sizeof(Place::pool_path))
    throw Error(LAGOMETER_INVALID, "shm: the runtime directory's name is too long: " + path);
  segment_ = Segment::make(path, Pool::bytes(slots_, slot_bytes));
  pool_ = new (segment_->data()) Pool{};
  pool_->slots = slots_;
  pool_->held_max = held_max_;
  pool_->slot_bytes = slot_bytes;
  pool_->writer_id = std::hash<std::string>{}(path);
  for (uint32_t slot = 0; slot < slots_; ++slot) new (&pool_->slot(slot)) Slot{};
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  if (pool_ == nullptr) throw Error(LAGOMETER_INVALID, "shm: borrow before enable on topic '" + endpoint_.topic + "'");
  if (!find_free_slot()) {
    forget_the_gone();
    if (!find_free_slot()) {
      rejected_.fetch_add(1, std::memory_order_relaxed);
      return LAGOMETER_REJECTED;
    }
  }
  Slot& slot = pool_->slot(slot_);
  slot.bytes = bytes;
  message.origin = LAGOMETER_ORIGIN_LOANED;
  message.region_count = 1;
  message.regions[0] = {slot.payload(), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

bool Writer::find_free_slot() noexcept {
  // Acquires: the readers that returned it have read it.
  const auto is_free = [this](uint32_t slot) noexcept {
    return pool_->slot(slot).holders.load(std::memory_order_acquire) == 0;
  };
  for (slot_ = 0; slot_ < std::min(warm_slots, slots_); ++slot_) {
    if (is_free(slot_)) return true;
  }
  for (uint32_t step = 0; step < slots_; ++step) {
    next_slot_ = next_slot_ + 1 < slots_ ? next_slot_ + 1 : 0;
    slot_ = next_slot_;
    if (is_free(slot_)) return true;
  }
  return false;
}

void Writer::forget_the_gone() noexcept {
  uint64_t gone = 0;
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (connection.open() && !connection.inbox_segment->maker_alive())
      connection.live.store(false, std::memory_order_relaxed);
    if (!connection.open()) gone |= connection.holder_bit;
  }
  if (gone == 0) return;
  for (uint32_t slot = 0; slot < slots_; ++slot) pool_->slot(slot).holders.fetch_and(~gone, std::memory_order_acq_rel);
}

lagometer_status Writer::commit(const lagometer_message&) noexcept {
  const uint32_t count = connections_.size();
  int64_t until_ns = 0;
  for (uint32_t index = 0; index < count; ++index) {
    // All or none: if one subscriber has no room, no subscriber gets the message.
    if (connections_[index].keep_all && !wait_for_room(connections_[index], until_ns)) {
      rejected_.fetch_add(1, std::memory_order_relaxed);
      return LAGOMETER_REJECTED;
    }
  }
  pool_->slot(slot_).sequence = ++sequence_;
  for (uint32_t index = 0; index < count; ++index) {
    if (connections_[index].open()) deliver(connections_[index], slot_);
  }
  return LAGOMETER_OK;
}

bool Writer::wait_for_room(Connection& connection, int64_t& until_ns) noexcept {
  const auto has_room = [&connection]() noexcept {
    return !connection.place->queue.full(connection.limit) ||
           connection.inbox->closed.load(std::memory_order_seq_cst) != 0;
  };
  while (connection.open() && !has_room()) {
    if (!endpoint_.reliable) return false;
    const int64_t now = now_ns();
    if (until_ns == 0) until_ns = floor::later(now, endpoint_.blocking_ns_max);
    if (now >= until_ns) {
      if (connection.inbox_segment->maker_alive()) return false;
      connection.live.store(false, std::memory_order_relaxed);
      return true;
    }
    pool_->room.sleep(has_room, until_ns);
  }
  return true;
}

void Writer::deliver(Connection& connection, uint32_t slot) noexcept {
  Queue& queue = connection.place->queue;
  const uint64_t mask = connection.inbox->ring_mask();
  for (uint32_t oldest = 0; queue.drop_oldest(connection.ring, mask, connection.limit, oldest);) {
    // The reader never got this entry, so its contents need no ordering.
    pool_->slot(oldest).holders.fetch_and(~connection.holder_bit, std::memory_order_relaxed);
    connection.place->overwritten.fetch_add(1, std::memory_order_relaxed);
    overwritten_.fetch_add(1, std::memory_order_relaxed);
  }
  // Before the push: the reader may return it at once.
  pool_->slot(slot).holders.fetch_or(connection.holder_bit, std::memory_order_relaxed);
  queue.push(connection.ring, mask, slot);
  if (connection.bell != nullptr) connection.bell->ring();
}

void Writer::matched(lagometer_matched& out) {
  const std::scoped_lock lock(connect_mutex_);
  out.count = 0;
  out.exact = 0;
  if (pool_ == nullptr) return;
  const auto known = [this](const std::string& name) {
    for (uint32_t index = 0; index < connections_.size(); ++index) {
      if (connections_[index].name == name) return true;
    }
    return std::find(refused_names_.begin(), refused_names_.end(), name) != refused_names_.end();
  };
  for (auto& found : rendezvous::scan(context_.topic_folder(endpoint_.topic), known)) connect(found);
  for (uint32_t index = 0; index < connections_.size(); ++index) {
    Connection& connection = connections_[index];
    if (connection.open() && !connection.inbox_segment->maker_alive())
      connection.live.store(false, std::memory_order_relaxed);
    if (connection.open()) ++out.count;
  }
}

void Writer::connect(rendezvous::Found& found) {
  std::string why = endpoint_.mismatch(found.facts);
  if (connections_.full())
    why = "this publisher has had " + std::to_string(connections_max) + " subscribers, the most there can be";
  if (!why.empty()) {
    refused_names_.push_back(found.name);
    return endpoint_.refuse(why, refused_names_.size());
  }
  auto connection = std::make_unique<Connection>();
  connection->name = found.name;
  try {
    connection->inbox_segment = Segment::open(found.facts.at("inbox").get<std::string>(), sizeof(Inbox));
    if (found.facts.contains("bell")) {
      connection->bell_segment = Segment::open(found.facts.at("bell").get<std::string>(), sizeof(Bell));
      connection->bell = reinterpret_cast<Bell*>(connection->bell_segment->data());
    }
  } catch (const Error&) {
    if (rendezvous::locked_by_other(found.file.get())) throw;
    return;  // it left while it was examined
  }
  connection->inbox = reinterpret_cast<Inbox*>(connection->inbox_segment->data());
  connection->limit = std::min(queue_limit_, found.facts.at("queue_limit").get<uint32_t>());
  connection->keep_all = endpoint_.keep_all && found.facts.at("keep_all").get<bool>();
  claim_place(*connection, connections_.size());
  connection->live.store(true, std::memory_order_relaxed);
  connections_.append(std::move(connection));
}

void Writer::claim_place(Connection& connection, uint32_t bit) {
  Inbox& inbox = *connection.inbox;
  for (uint32_t index = 0; index < connections_max; ++index) {
    Place& place = inbox.places[index];
    uint32_t free = place_free;
    // Acquires: the reader is done with the previous owner of the place.
    if (!place.state.compare_exchange_strong(free, place_claimed, std::memory_order_acq_rel)) continue;
    place.holder_bit = bit;
    place.back_pressure = connection.keep_all && endpoint_.reliable ? 1 : 0;
    std::memcpy(place.pool_path.data(), segment_->path().c_str(), segment_->path().size() + 1);
    place.overwritten.store(0, std::memory_order_relaxed);
    place.queue.head.store(0, std::memory_order_relaxed);
    place.queue.tail.store(0, std::memory_order_relaxed);
    place.state.store(place_open, std::memory_order_release);  // publishes the above
    uint32_t end = inbox.places_end.load(std::memory_order_relaxed);
    while (end <= index && !inbox.places_end.compare_exchange_weak(end, index + 1, std::memory_order_seq_cst)) {
    }
    connection.place = &place;
    connection.ring = inbox.ring(index);
    connection.holder_bit = 1ULL << bit;
    return;
  }
  throw Error(LAGOMETER_NO_RESOURCE, "shm: a subscriber of '" + endpoint_.topic + "' already has " +
                                         std::to_string(connections_max) + " publishers, the most there can be");
}

void Writer::counters(lagometer_counters& out) const noexcept {
  out.present = LAGOMETER_COUNTER_REJECTED | LAGOMETER_COUNTER_OVERWRITTEN;
  out.rejected = rejected_.load(std::memory_order_relaxed);
  out.overwritten = overwritten_.load(std::memory_order_relaxed);
}

}  // namespace lagometer::shm
