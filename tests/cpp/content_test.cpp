// SPDX-License-Identifier: Apache-2.0
// Payloads hold what the plan says, and times of work have the moments of their distributions.
#include "content.hpp"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "work.hpp"

namespace lagometer::engine {
namespace {

std::vector<uint8_t> filled(const Content& content, size_t bytes, uint64_t sequence) {
  std::vector<uint8_t> data(bytes, 0xAA);
  lagometer_message message{};
  message.region_count = 2;  // as an adapter whose buffer wraps around
  message.regions[0].data = data.data();
  message.regions[0].size = bytes / 3;
  message.regions[1].data = data.data() + bytes / 3;
  message.regions[1].size = bytes - bytes / 3;
  content.fill(message, sequence);
  return data;
}

TEST(Content, LeavesTheBufferAsItIsUnlessAsked) {
  EXPECT_EQ(filled(Content({}), 100, 0), std::vector<uint8_t>(100, 0xAA));
}

TEST(Content, ZerosAreZeros) {
  ContentPlan plan;
  plan.kind = ContentKind::zeros;
  EXPECT_EQ(filled(Content(plan), 3'000'000, 5), std::vector<uint8_t>(3'000'000, 0));
}

TEST(Content, RandomBytesDependOnSeedAndMessageAndDoNotCompress) {
  ContentPlan plan;
  plan.kind = ContentKind::random;
  plan.seed = 1;
  const Content content(plan);
  const auto first = filled(content, 100'000, 0);
  EXPECT_EQ(first, filled(content, 100'000, 0));
  EXPECT_NE(first, filled(content, 100'000, 1));
  plan.seed = 2;
  EXPECT_NE(first, filled(Content(plan), 100'000, 0));
  uLongf size = compressBound(first.size());
  std::vector<uint8_t> packed(size);
  ASSERT_EQ(compress(packed.data(), &size, first.data(), first.size()), Z_OK);
  EXPECT_GT(size, first.size());
}

TEST(Content, RecordedBytesFollowEachOther) {
  const std::string path = testing::TempDir() + "lagometer-content-" + std::to_string(getpid());
  std::ofstream(path) << "abcdefg";
  ContentPlan plan;
  plan.kind = ContentKind::recorded;
  plan.path = path;
  plan.crc32 = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>("abcdefg"), 7));
  const Content content(plan);
  const auto text = [&](uint64_t sequence) {
    const auto data = filled(content, 9, sequence);
    return std::string(data.begin(), data.end());
  };
  EXPECT_EQ(text(0), "abcdefgab");
  EXPECT_EQ(text(1), "cdefgabcd");
  ++plan.crc32;
  EXPECT_THROW(Content{plan}, std::runtime_error);
  std::filesystem::remove(path);
  EXPECT_THROW(Content{plan}, std::runtime_error);
}

TEST(Content, IsPrintableWherePayloadsAreText) {
  ContentPlan plan;
  for (const ContentKind kind : {ContentKind::zeros, ContentKind::random}) {
    plan.kind = kind;
    const auto data = filled(Content(plan, true), 3'000'000, 5);
    EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](uint8_t byte) { return byte > 0x20 && byte < 0x7F; }));
    EXPECT_EQ(std::set<uint8_t>(data.begin(), data.end()).size(), kind == ContentKind::zeros ? 1U : 64U);
  }
  plan.kind = ContentKind::recorded;
  EXPECT_THROW(Content(plan, true), std::runtime_error);
}

struct Moments {
  double mean = 0.0;
  double sd = 0.0;
  double least = 0.0;
};

template <typename Transform>
Moments moments(const WorkPlan& plan, int64_t work_ns, Transform transform) {
  constexpr int kCount = 100'000;
  Work work(plan, work_ns);
  double sum = 0.0;
  double squares = 0.0;
  double least = 1e300;
  for (int at = 0; at < kCount; ++at) {
    const double value = transform(static_cast<double>(work.next_ns()));
    sum += value;
    squares += value * value;
    least = std::min(least, value);
  }
  const double mean = sum / kCount;
  return {.mean = mean, .sd = std::sqrt(squares / kCount - mean * mean), .least = least};
}

TEST(Work, IsConstantUnlessAsked) {
  Work work({}, 1234);
  EXPECT_EQ(work.next_ns(), 1234);
  EXPECT_EQ(work.next_ns(), 1234);
}

TEST(Work, NormalHasItsMeanAndDeviation) {
  const WorkPlan plan{.kind = WorkKind::normal, .spread_ns = 200'000, .seed = 5};
  const Moments found = moments(plan, 1'000'000, [](double value) { return value; });
  EXPECT_NEAR(found.mean, 1e6, 3.3 * 200e3 / std::sqrt(1e5));
  EXPECT_NEAR(found.sd, 200e3, 3.3 * 200e3 / std::sqrt(2e5));
}

TEST(Work, NormalIsTruncatedAtZero) {
  // Of a distribution around zero the positive half is left: mean σ √(2/π), deviation σ √(1 - 2/π).
  const WorkPlan plan{.kind = WorkKind::normal, .spread_ns = 1'000'000, .seed = 6};
  const Moments found = moments(plan, 0, [](double value) { return value; });
  EXPECT_GE(found.least, 0.0);
  EXPECT_NEAR(found.mean, 797'885.0, 6'500.0);
  EXPECT_NEAR(found.sd, 602'810.0, 6'500.0);
}

TEST(Work, LognormalHasItsMedianAndSigma) {
  const WorkPlan plan{.kind = WorkKind::lognormal, .sigma = 0.5, .seed = 7};
  const Moments found = moments(plan, 1'000'000, [](double value) { return std::log(value); });
  EXPECT_NEAR(found.mean, std::log(1e6), 3.3 * 0.5 / std::sqrt(1e5));
  EXPECT_NEAR(found.sd, 0.5, 3.3 * 0.5 / std::sqrt(2e5));
}

TEST(Work, IsTheSameForASeed) {
  const WorkPlan plan{.kind = WorkKind::lognormal, .sigma = 1.0, .seed = 8};
  Work one(plan, 1000);
  Work other(plan, 1000);
  std::set<int64_t> drawn;
  for (int at = 0; at < 100; ++at) {
    const int64_t value_ns = one.next_ns();
    EXPECT_EQ(value_ns, other.next_ns());
    drawn.insert(value_ns);
  }
  EXPECT_GT(drawn.size(), 80U);
}

}  // namespace
}  // namespace lagometer::engine
