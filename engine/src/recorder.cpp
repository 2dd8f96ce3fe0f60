// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

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
  }
  throw std::logic_error("a lane of unknown kind");
}

uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

[[noreturn]] void no_room(uint64_t bytes, const char* what) {
  throw std::runtime_error("no room for " + std::to_string(bytes) + " bytes of records (" + what + ": " +
                           std::strerror(errno) + "); shorten the measure phase or lower the rate");
}

}  // namespace

Recorder::Recorder(uint32_t worker, std::span<const LaneSpecification> lanes, int descriptor) {
  uint64_t offset = sizeof(RecordsHeader) + lanes.size() * sizeof(LaneHeader);
  std::vector<LaneHeader> headers;
  for (const LaneSpecification& lane : lanes) {
    LaneHeader header{};
    header.kind = static_cast<uint32_t>(lane.kind);
    header.node = lane.node;
    header.endpoint = lane.endpoint;
    header.record_bytes = record_bytes(lane.kind);
    header.offset = offset;
    header.capacity = lane.capacity;
    offset += aligned(lane.capacity * header.record_bytes) + 64;  // one line more, for the prefetch beyond the end
    headers.push_back(header);
    if (offset > kBytesMax)
      throw std::runtime_error("records of more than 8 GiB: shorten the measure phase or lower the rate");
  }
  bytes_ = offset;
  descriptor_ = descriptor >= 0 ? descriptor : memfd_create("lagometer-records", MFD_CLOEXEC);
  if (descriptor_ < 0) no_room(bytes_, "memfd_create");
  if (ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) no_room(bytes_, "ftruncate");
  void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
  if (memory == MAP_FAILED) no_room(bytes_, "mmap");
  base_ = static_cast<std::byte*>(memory);
  std::memcpy(base_ + sizeof(RecordsHeader), headers.data(), headers.size() * sizeof(LaneHeader));
  RecordsHeader header{};
  header.magic = kRecordsMagic;
  header.version = kRecordsVersion;
  header.lane_count = static_cast<uint32_t>(headers.size());
  header.total_bytes = bytes_;
  header.worker = worker;
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
    if (!kind || header.kind == static_cast<uint32_t>(*kind)) count += __atomic_load_n(&header.count, __ATOMIC_ACQUIRE);
  }
  return count;
}

std::vector<std::byte> Recorder::packed() const {
  RecordsHeader header{};
  std::memcpy(&header, base_, sizeof header);
  std::vector<LaneHeader> headers(table(), table() + header.lane_count);
  uint64_t offset = sizeof(RecordsHeader) + headers.size() * sizeof(LaneHeader);
  for (LaneHeader& lane : headers) {
    lane.capacity = lane.count;
    lane.offset = offset;
    offset += aligned(lane.count * lane.record_bytes);
  }
  header.total_bytes = offset;
  std::vector<std::byte> block(offset);
  std::memcpy(block.data(), &header, sizeof header);
  std::memcpy(block.data() + sizeof header, headers.data(), headers.size() * sizeof(LaneHeader));
  for (size_t lane = 0; lane < headers.size(); ++lane) {
    const LaneHeader& from = table()[lane];
    std::memcpy(block.data() + headers[lane].offset, base_ + from.offset, from.count * from.record_bytes);
  }
  return block;
}

}  // namespace lagometer::engine
