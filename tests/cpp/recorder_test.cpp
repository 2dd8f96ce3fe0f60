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
#include <set>
#include <thread>
#include <vector>

#include "endpoint_user.hpp"
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

template <typename Record, typename State>
bool append(Lane<Record, State>& lane, const Record& record) {
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
  struct stat status{};
  {
    const Recorder recorder(7, kLanes, descriptor, 2);
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
  EXPECT_EQ(header.host, 2U);
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
  try {
    const Recorder recorder(0, lanes, -1);
    FAIL() << "12 GiB were accepted";
  } catch (const NoRoom& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("13089"), std::string::npos) << text;
    EXPECT_NE(text.find(" bytes of records"), std::string::npos) << text;
  }
}

TEST(Recorder, TurnsPagesWithoutLosingOrDoublingARecord) {
  constexpr uint64_t kRecords = 3 * SentLane::Page::kRecords - 5;
  const std::array<LaneSpecification, 2> lanes = {{{LaneKind::sent, 0, 0, kRecords}, {LaneKind::causes, 0, 0, 600}}};
  const int descriptor = memfd_create("test", 0);
  ASSERT_GE(descriptor, 0);
  const Recorder recorder(0, lanes, descriptor);
  auto lane = recorder.sent(0);
  for (uint64_t sequence = 0; sequence < kRecords; ++sequence) {
    ASSERT_EQ(lane.count(), sequence);
    ASSERT_EQ(lane.room(), kRecords - sequence);
    ASSERT_TRUE(append(lane, sent(sequence)));
    ASSERT_EQ(recorder.count(), sequence + 1);
  }
  EXPECT_FALSE(append(lane, sent(kRecords)));
  auto causes = recorder.causes(1);
  for (uint64_t sequence = 0; sequence < 600; ++sequence) ASSERT_TRUE(append(causes, CauseRecord{sequence, 7, 0}));
  std::vector<std::byte> mapped(lseek(descriptor, 0, SEEK_END));
  ASSERT_EQ(pread(descriptor, mapped.data(), mapped.size(), 0), static_cast<ssize_t>(mapped.size()));
  for (const auto& block : {mapped, recorder.packed()}) {
    const test::Recorded decoded = test::decode(block);
    const auto records = decoded.sent(0, 0);
    ASSERT_EQ(records.size(), kRecords);
    for (uint64_t sequence = 0; sequence < kRecords; ++sequence) EXPECT_EQ(records[sequence].sequence, sequence);
    ASSERT_EQ(decoded.causes(0, 0).size(), 600U);
    EXPECT_EQ(decoded.causes(0, 0).back().sequence, 599U);
  }
}

TEST(Recorder, CarriesTheEndpointsStateFromPageToPage) {
  const std::array<LaneSpecification, 1> lanes = {{{LaneKind::sent, 0, 0, 200}}};
  const Recorder recorder(0, lanes, -1);
  auto lane = recorder.sent(0);
  for (uint64_t sequence = 0; sequence < 200; ++sequence) {
    ASSERT_EQ(lane.state().next_sequence++, sequence);
    ASSERT_TRUE(append(lane, sent(sequence)));
  }
}

TEST(Recorder, KeepsTheStateOfAnEndpointWithoutRoom) {
  const std::array<LaneSpecification, 2> lanes = {{{LaneKind::sent, 0, 0, 0}, {LaneKind::sent, 0, 1, 1}}};
  const Recorder recorder(0, lanes, -1);
  auto lane = recorder.sent(0);
  lane.state().sent = 5;
  EXPECT_EQ(lane.claim(), nullptr);
  EXPECT_EQ(recorder.sent(1).state().sent, 0U);
  EXPECT_EQ(lane.state().sent, 5U);
}

// --- Lanes of stamps. ---

constexpr std::array<LaneSpecification, 2> kStampLanes = {
    {{LaneKind::sent_stamps, 4, 9, 1'000}, {LaneKind::received_stamps, 5, 0, 2}}};

/// A lane as it lies in a block, packed or mapped.
std::pair<LaneHeader, std::vector<StampRecord>> stamps_in(const std::vector<std::byte>& block, size_t lane) {
  LaneHeader header{};
  std::memcpy(&header, block.data() + sizeof(RecordsHeader) + lane * sizeof header, sizeof header);
  EXPECT_EQ(header.page_bytes, 0U);
  std::vector<StampRecord> records(header.count);
  std::memcpy(records.data(), block.data() + header.offset, records.size() * sizeof(StampRecord));
  return {header, records};
}

TEST(StampLane, KeepsWhatManyThreadsAddAtOnce) {
  constexpr uint64_t kThreads = 4;
  constexpr uint64_t kEach = 300;
  const Recorder recorder(0, kStampLanes, -1);
  const StampLane lane = recorder.stamps(0);
  {
    std::vector<std::jthread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&lane, thread] {
        for (uint64_t number = 0; number < kEach; ++number) {
          const uint64_t sequence = thread * kEach + number;
          StampRecord record{};
          record.sequence = sequence;
          record.middleware_sequence = sequence + 7;
          record.time_ns = static_cast<int64_t>(sequence + 1);
          lane.add(record);
        }
      });
    }
  }
  const auto [header, records] = stamps_in(recorder.packed(), 0);
  ASSERT_EQ(records.size(), 1'000U);
  EXPECT_EQ(header.overflow, kThreads * kEach - 1'000);
  EXPECT_EQ(lane.overflow(), header.overflow);
  std::set<uint64_t> seen;
  for (const StampRecord& record : records) {
    EXPECT_EQ(record.middleware_sequence, record.sequence + 7);
    EXPECT_EQ(record.time_ns, static_cast<int64_t>(record.sequence + 1));
    seen.insert(record.sequence);
  }
  EXPECT_EQ(seen.size(), records.size());
  EXPECT_EQ(recorder.count(LaneKind::sent_stamps), 1'000U);
}

TEST(StampLane, KeepsWhatAnAdaptersThreadKnowsByItsKeyAlone) {
  const Recorder recorder(0, kStampLanes, -1);
  Stage stage;
  EndpointUser user(stage);
  const lagometer_stamp_key key{.writer_id = 3, .middleware_sequence = 4, .source_time_ns = 5};
  user.stamp(key, LAGOMETER_LAYER_VENDOR, 10, 1);  // nobody asked
  user.record_into(recorder.stamps(1));
  user.stamp(key, LAGOMETER_LAYER_VENDOR, 11, 1);  // before the common start there are probes alone
  stage.start_ns = 1;
  user.stamp(key, LAGOMETER_LAYER_VENDOR, 12, 1);
  user.stamp(key, LAGOMETER_LAYER_NONE, 13, 1);
  const auto [header, records] = stamps_in(recorder.packed(), 1);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].sequence, kSequenceUnknown);
  EXPECT_EQ(records[0].stream, kStreamUnknown);
  EXPECT_EQ(records[0].writer_id, 3U);
  EXPECT_EQ(records[0].middleware_sequence, 4U);
  EXPECT_EQ(records[0].source_time_ns, 5);
  EXPECT_EQ(records[0].time_ns, 12);
  EXPECT_EQ(header.overflow, 0U);
}

}  // namespace
}  // namespace lagometer::engine
