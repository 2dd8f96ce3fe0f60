// SPDX-License-Identifier: Apache-2.0
#include "recorder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "trial.hpp"

namespace lagometer::engine {
namespace {

constexpr std::array<LaneSpecification, 3> kLanes = {
    {{LaneKind::sent, 4, 9, 3}, {LaneKind::causes, 4, 9, 5}, {LaneKind::received, 5, 0, 2}}};

SentRecord sent(uint64_t sequence) {
  SentRecord record{};
  record.sequence = sequence;
  record.publish_ns = 1;
  return record;
}

template <typename Record>
bool append(Lane<Record>& lane, const Record& record) {
  Record* const claimed = lane.claim();
  if (claimed == nullptr) return false;
  *claimed = record;
  lane.keep();
  return true;
}

TEST(Recorder, KeepsWhatIsAppendedInItsLane) {
  const Recorder recorder(2, kLanes, -1);
  auto lane = recorder.sent(0);
  auto received = recorder.received(2);
  ReceivedRecord taken{};
  taken.sequence = 10;
  taken.taken_ns = 5;
  EXPECT_TRUE(append(lane, sent(10)));
  EXPECT_TRUE(append(lane, sent(11)));
  EXPECT_TRUE(append(received, taken));
  const auto block = recorder.packed();
  const test::Recorded decoded = test::decode(block);
  ASSERT_EQ(decoded.sent(4, 9).size(), 2U);
  EXPECT_EQ(decoded.sent(4, 9)[1].sequence, 11U);
  ASSERT_EQ(decoded.received(5, 0).size(), 1U);
  EXPECT_EQ(decoded.received(5, 0)[0].taken_ns, 5);
  EXPECT_TRUE(decoded.causes(4, 9).empty());
}

TEST(Recorder, FlagsALaneThatIsFullAndDropsTheRest) {
  const Recorder recorder(0, kLanes, -1);
  auto lane = recorder.sent(0);
  for (uint64_t sequence = 0; sequence < 3; ++sequence) EXPECT_TRUE(append(lane, sent(sequence)));
  EXPECT_FALSE(lane.full());
  EXPECT_FALSE(append(lane, sent(3)));
  EXPECT_TRUE(lane.full());
  EXPECT_EQ(lane.count(), 3U);
  const test::Recorded decoded = test::decode(recorder.packed());
  EXPECT_TRUE(decoded.full.at({LaneKind::sent, 4, 9}));
  EXPECT_FALSE(decoded.full.at({LaneKind::received, 5, 0}));
}

TEST(Recorder, CountsARecordOnlyWhenItIsWhole) {
  const Recorder recorder(0, kLanes, -1);
  auto lane = recorder.sent(0);
  SentRecord* const claimed = lane.claim();
  ASSERT_NE(claimed, nullptr);
  claimed->sequence = 5;
  EXPECT_TRUE(test::decode(recorder.packed()).sent(4, 9).empty());
  lane.keep();
  EXPECT_EQ(test::decode(recorder.packed()).sent(4, 9).size(), 1U);
}

TEST(Recorder, AlignsEveryLaneToACacheLine) {
  const Recorder recorder(0, kLanes, -1);
  const auto block = recorder.packed();
  for (size_t index = 0; index < kLanes.size(); ++index) {
    LaneHeader lane{};
    std::memcpy(&lane, block.data() + sizeof(RecordsHeader) + index * sizeof lane, sizeof lane);
    EXPECT_EQ(lane.offset % 64, 0U);
    EXPECT_EQ(lane.record_bytes, index == 1 ? 16U : 64U);
  }
}

TEST(Recorder, LiesInTheInheritedMemfd) {
  const int descriptor = memfd_create("test", 0);
  ASSERT_GE(descriptor, 0);
  const int kept = dup(descriptor);
  struct stat status {};
  {
    const Recorder recorder(7, kLanes, descriptor);
    auto lane = recorder.sent(0);
    append(lane, sent(42));
    ASSERT_EQ(fstat(kept, &status), 0);
  }
  // The recorder closed its descriptor; what it wrote can still be read, each lane at its full capacity.
  EXPECT_EQ(fcntl(descriptor, F_GETFD), -1);
  std::vector<std::byte> block(static_cast<size_t>(status.st_size));
  ASSERT_EQ(pread(kept, block.data(), block.size(), 0), status.st_size);
  const test::Recorded decoded = test::decode(block);
  ASSERT_EQ(decoded.sent(4, 9).size(), 1U);
  EXPECT_EQ(decoded.sent(4, 9)[0].sequence, 42U);
  RecordsHeader header{};
  std::memcpy(&header, block.data(), sizeof header);
  EXPECT_EQ(header.worker, 7U);
  close(kept);
}

TEST(Recorder, HasItsPagesBeforeAnythingIsMeasured) {
  const std::array<LaneSpecification, 1> lanes = {{{LaneKind::sent, 0, 0, 1 << 14}}};
  const Recorder recorder(0, lanes, -1);
  auto lane = recorder.sent(0);
  rusage before{};
  rusage after{};
  getrusage(RUSAGE_THREAD, &before);
  for (uint64_t sequence = 0; sequence < (1 << 14); ++sequence) append(lane, sent(sequence));
  getrusage(RUSAGE_THREAD, &after);
  // A million bytes would be 256 faults.
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 8);
}

TEST(Recorder, RefusesWhatDoesNotFit) {
  const std::array<LaneSpecification, 3> lanes = {
      {{LaneKind::sent, 0, 0, 1 << 26}, {LaneKind::received, 0, 0, 1 << 26}, {LaneKind::received, 0, 1, 1 << 26}}};
  EXPECT_THROW(Recorder(0, lanes, -1), std::runtime_error);
}

}  // namespace
}  // namespace lagometer::engine
