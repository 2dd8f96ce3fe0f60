// SPDX-License-Identifier: Apache-2.0
// When a reader counts as matched, whatever the clocks of its senders say.
#include "endpoint.hpp"

#include <gtest/gtest.h>

#include "plan_bounds.hpp"

namespace lagometer::engine {
namespace {

constexpr int64_t kHeard_ns = 1'000'000'000'000;
constexpr int64_t kEnough_ns = kInFlightMax_ns;

class Matching : public testing::Test {
 protected:
  static ReaderPlan of_streams(std::vector<uint32_t> streams) {
    ReaderPlan plan;
    plan.type = "bytes";
    plan.payload_bytes = 64;
    plan.streams = std::move(streams);
    return plan;
  }
  using Streams = std::vector<uint32_t>;
  lagometer_adapter_table table_{};
  FailureFlag failure_;
  Input input_{of_streams({0, 5}), 0, table_, {}, failure_};
};

TEST_F(Matching, IsByAProbeThatWasSentWhenAnotherHadBeenHeard) {
  for (const int64_t ahead_ns : {int64_t{0}, int64_t{10'000'000'000}, int64_t{-10'000'000'000}}) {
    Input input(of_streams({0, 5}), 0, table_, {}, failure_);
    const auto probe = [&](uint32_t stream, int64_t sent_ns, int64_t taken_ns) {
      input.note_probe(stream, static_cast<uint64_t>(kHeard_ns + sent_ns + ahead_ns), kHeard_ns + taken_ns);
    };
    probe(0, 0, 1'000);
    probe(7, kEnough_ns, kEnough_ns);
    EXPECT_EQ(input.missing(), (Streams{0, 5})) << "one has been heard, and one of a stream that nobody expects";
    probe(0, kEnough_ns, 2'000);
    EXPECT_EQ(input.missing(), (Streams{0, 5})) << "it waited with the first for its reader";
    probe(0, kEnough_ns - 1, 2 * kEnough_ns);
    EXPECT_EQ(input.missing(), (Streams{0, 5})) << "it may have been sent when the first was still on its way";
    probe(0, kEnough_ns, kEnough_ns + 1'000);
    EXPECT_EQ(input.missing(), (Streams{5})) << ahead_ns;
  }
}

TEST_F(Matching, ComparesTimesThatAreOfOneClock) {
  ReaderPlan plan = of_streams({0, 5});
  plan.shares_clock = true;
  Input input(plan, 0, table_, {}, failure_);
  const auto probe = [&](uint32_t stream, int64_t sent_ns, int64_t taken_ns) {
    input.note_probe(stream, static_cast<uint64_t>(kHeard_ns + sent_ns), kHeard_ns + taken_ns);
  };
  probe(0, -2 * kEnough_ns, 0);
  probe(0, -1, 2 * kEnough_ns);
  probe(0, 0, 3 * kEnough_ns);
  EXPECT_EQ(input.missing(), (Streams{0, 5})) << "sent before the first was heard, however late they came";
  probe(0, 1, 2);
  EXPECT_EQ(input.missing(), (Streams{5})) << "sent after it, however soon it came";
}

TEST_F(Matching, OfSmallPayloadsNeverComparesClocks) {
  ReaderPlan plan = of_streams({0});
  plan.shares_clock = plan.sizes_vary = true;
  Input input(plan, 0, table_, {}, failure_);
  input.note_probe(0, static_cast<uint64_t>(kHeard_ns - 1), kHeard_ns);
  input.note_probe(0, static_cast<uint64_t>(kHeard_ns + 1), kHeard_ns + 2);
  EXPECT_EQ(input.missing(), (Streams{0})) << "only its low bits are known";
  input.note_probe(0, static_cast<uint64_t>(kHeard_ns + kEnough_ns), kHeard_ns + kEnough_ns);
  EXPECT_EQ(input.missing(), Streams{});
}

TEST_F(Matching, BearsWhateverASequenceSays) {
  input_.note_probe(0, 0, kHeard_ns);
  input_.note_probe(0, ~uint64_t{0}, kHeard_ns + kEnough_ns);
  EXPECT_EQ(input_.missing(), (Streams{0, 5})) << "sent before the first";
  input_.note_probe(5, ~uint64_t{0}, kHeard_ns);
  input_.note_probe(5, static_cast<uint64_t>(kEnough_ns) - 1, kHeard_ns + kEnough_ns);
  EXPECT_EQ(input_.missing(), (Streams{0})) << "the counter went round";
}

TEST_F(Matching, OfSmallPayloadsGoesOnWhereTheirBitsBeginAnew) {
  ReaderPlan small = of_streams({0});
  small.payload_bytes = 4;
  constexpr int64_t kRound_ns = int64_t{1} << (31 + 10);
  Input input(small, 0, table_, {}, failure_);
  input.note_probe(0, static_cast<uint64_t>(kRound_ns - 1), kHeard_ns);
  input.note_probe(0, static_cast<uint64_t>(kRound_ns - kEnough_ns), kHeard_ns + kEnough_ns);
  EXPECT_EQ(input.missing(), (Streams{0})) << "sent before the first";
  input.note_probe(0, static_cast<uint64_t>(kEnough_ns), kHeard_ns + kEnough_ns);
  EXPECT_EQ(input.missing(), Streams{}) << "sent after it";
}

TEST(SmallPayloads, AreNumberedByTheNearestAndRefusedFarFromIt) {
  ReaderPlan plan;
  plan.type = "bytes";
  plan.payload_bytes = 4;
  plan.streams = {9};
  const lagometer_adapter_table table{};
  FailureFlag failure;
  Input input(plan, 0, table, {}, failure);
  std::array<uint8_t, 4> bytes{};
  const auto open = [&](uint64_t sequence) {
    write_small_envelope(bytes.data(), {.sequence = sequence}, false);
    return input.open_small(bytes.data());
  };
  for (const uint64_t sequence : {uint64_t{0}, uint64_t{1}, uint64_t{500'000'000}, uint64_t{499'999'990}}) {
    const std::optional<Envelope> found = open(sequence);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sequence, sequence);
    EXPECT_EQ(found->stream, 9U);
  }
  EXPECT_FALSE(open(500'000'001 + (uint64_t{1} << 29) + 1));
  EXPECT_EQ(input.corrupted(), 1U);
}

TEST(SmallPayloads, OfUnknownSendersAreCounted) {
  ReaderPlan plan;
  plan.type = "bytes";
  plan.payload_bytes = 4;
  const lagometer_adapter_table table{};
  FailureFlag failure;
  Input input(plan, 0, table, {}, failure);
  std::array<uint8_t, 4> bytes{};
  write_small_envelope(bytes.data(), {.sequence = 1}, false);
  EXPECT_FALSE(input.open_small(bytes.data()));
  EXPECT_EQ(input.corrupted(), 1U);
}

}  // namespace
}  // namespace lagometer::engine
