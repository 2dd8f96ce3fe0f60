// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include "plan_bounds.hpp"

namespace lagometer::engine {

namespace {

uint32_t record_bytes(LaneKind kind) {
  switch (kind) {
    case LaneKind::sent:
      return sizeof(SentRecord);
    case LaneKind::received:
      return sizeof(ReceivedRecord);
    case LaneKind::causes:
      return sizeof(CauseRecord);
    case LaneKind::sent_stamps:
    case LaneKind::received_stamps:
      return sizeof(StampRecord);
    case LaneKind::sent_events:
    case LaneKind::received_events:
      return sizeof(EventRecord);
  }
  throw std::logic_error("a lane of unknown kind");
}

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Whether several threads may write to such a lane at once.
bool is_shared(LaneKind kind) { return kind >= LaneKind::sent_stamps; }

uint64_t pages_of(const LaneHeader& lane) {
  const uint64_t records = records_per_page(lane.record_bytes);
  return (lane.capacity + records - 1) / records;
}

[[noreturn]] void no_room(uint64_t bytes, const std::string& why) {
  throw NoRoom("no room for " + std::to_string(bytes) + " bytes of records (" + why +
               "); shorten the measure phase, lower the rate or free memory");
}

std::string because(const char* call) { return std::string(call) + ": " + std::strerror(errno); }

/// Calls f(first record, count) for each page of a lane that holds records.
template <typename Visit>
void for_each_page(const std::byte* base, const LaneHeader& lane, Visit visit) {
  if (lane.page_bytes == 0) return visit(base + lane.offset, __atomic_load_n(&lane.count, __ATOMIC_ACQUIRE));
  const uint64_t full = records_per_page(lane.record_bytes);
  for (uint64_t page = 0; page < pages_of(lane); ++page) {
    const std::byte* const head = base + lane.offset + page * kPageBytes;
    const uint64_t count = __atomic_load_n(reinterpret_cast<const uint64_t*>(head), __ATOMIC_ACQUIRE);
    visit(head + kPageHeadBytes, count);
    if (count < full) return;
  }
}

uint64_t count_of(const std::byte* base, const LaneHeader& lane) {
  uint64_t total = 0;
  for_each_page(base, lane, [&](const std::byte*, uint64_t count) { total += count; });
  return total;
}

}  // namespace

Recorder::Recorder(uint32_t worker, std::span<const LaneSpecification> lanes, int descriptor, uint32_t host) {
  const auto whole_pages = [](uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; };
  bytes_ = whole_pages(sizeof(RecordsHeader) + lanes.size() * sizeof(LaneHeader));
  std::vector<LaneHeader> headers;
  for (const LaneSpecification& lane : lanes) {
    LaneHeader header{};
    header.kind = static_cast<uint32_t>(lane.kind);
    header.node = lane.node;
    header.endpoint = lane.endpoint;
    header.record_bytes = record_bytes(lane.kind);
    header.offset = bytes_;
    header.capacity = lane.capacity;
    if (is_shared(lane.kind)) {
      bytes_ += whole_pages(lane.capacity * header.record_bytes);
    } else {
      header.page_bytes = kPageBytes;
      bytes_ += std::max(pages_of(header), uint64_t{1}) * kPageBytes;  // a page without records still has a state
    }
    headers.push_back(header);
  }
  if (bytes_ > kRecordsBytesMax) no_room(bytes_, "a worker may have " + std::to_string(kRecordsBytesMax));
  descriptor_ = descriptor >= 0 ? descriptor : memfd_create("lagometer-records", MFD_CLOEXEC);
  if (descriptor_ < 0) no_room(bytes_, because("memfd_create"));
  if (ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) no_room(bytes_, because("ftruncate"));
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
  if (memory == MAP_FAILED) no_room(bytes_, because("mmap"));
  base_ = static_cast<std::byte*>(memory);
  std::memcpy(base_ + sizeof(RecordsHeader), headers.data(), headers.size() * sizeof(LaneHeader));
  RecordsHeader header{};
  header.magic = kRecordsMagic;
  header.version = kRecordsVersion;
  header.lane_count = static_cast<uint32_t>(headers.size());
  header.total_bytes = bytes_;
  header.worker = worker;
  header.host = host;
  std::memcpy(base_, &header, sizeof header);
}

Recorder::~Recorder() {
  if (base_ != nullptr) munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

LaneHeader* Recorder::table() const noexcept { return reinterpret_cast<LaneHeader*>(base_ + sizeof(RecordsHeader)); }

uint64_t Recorder::count(std::optional<LaneKind> kind) const noexcept {
  const auto lanes = reinterpret_cast<const RecordsHeader*>(base_)->lane_count;
  uint64_t count = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const LaneHeader& header = table()[lane];
    if (!kind || header.kind == static_cast<uint32_t>(*kind)) count += count_of(base_, header);
  }
  return count;
}

std::vector<std::byte> Recorder::packed() const {
  RecordsHeader header{};
  std::memcpy(&header, base_, sizeof header);
  std::vector<LaneHeader> headers(table(), table() + header.lane_count);
  uint64_t offset = sizeof(RecordsHeader) + headers.size() * sizeof(LaneHeader);
  for (LaneHeader& lane : headers) {
    lane.count = count_of(base_, lane);
    lane.capacity = lane.count;
    lane.page_bytes = 0;
    lane.offset = offset;
    offset += aligned(lane.count * lane.record_bytes);
  }
  header.total_bytes = offset;
  std::vector<std::byte> block(offset);
  std::memcpy(block.data(), &header, sizeof header);
  std::memcpy(block.data() + sizeof header, headers.data(), headers.size() * sizeof(LaneHeader));
  for (size_t index = 0; index < headers.size(); ++index) {
    std::byte* to = block.data() + headers[index].offset;
    uint64_t left = headers[index].count;  // records that a thread is still adding are not in this block
    for_each_page(base_, table()[index], [&](const std::byte* from, uint64_t count) {
      count = std::min(count, left);
      std::memcpy(to, from, count * headers[index].record_bytes);
      to += count * headers[index].record_bytes;
      left -= count;
    });
  }
  return block;
}

}  // namespace lagometer::engine
