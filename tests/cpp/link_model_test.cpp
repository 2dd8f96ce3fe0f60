// SPDX-License-Identifier: Apache-2.0
// What an emulated link does to frames: its shares, its bursts, its delays, and the order of frames. All is seeded, so
// a test that passes always does.
#include "link_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lagometer::link {
namespace {

constexpr int kMany = 200'000;
constexpr int64_t kApart_ns = 1'000'000'000;  // no frame waits for another

/// The fates of frames that come so far apart.
std::vector<Fate> fates(const Profile& profile, int64_t apart_ns = kApart_ns, int count = kMany) {
  Model model(profile, 7);
  std::vector<Fate> found;
  for (int frame = 0; frame < count; ++frame) found.push_back(model.next(frame * apart_ns));
  return found;
}

template <typename Predicate>
double share(const std::vector<Fate>& found, Predicate holds) {
  double count = 0;
  for (const Fate& fate : found) count += holds(fate) ? 1 : 0;
  return count / static_cast<double>(found.size());
}

bool lost(const Fate& fate) { return fate.copies == 0; }

TEST(LinkModel, LosesDuplicatesAndLetsOvertakeTheSharesAsked) {
  const auto found = fates({.delay_ns = 5'000'000, .loss = 0.05, .reorder = 0.02, .duplicate = 0.01});
  EXPECT_NEAR(share(found, lost), 0.05, 0.002);
  EXPECT_NEAR(share(found, [](const Fate& fate) { return fate.overtakes; }), 0.02 * 0.95, 0.002);
  EXPECT_NEAR(share(found, [](const Fate& fate) { return fate.copies == 2; }), 0.01 * 0.95, 0.001);
}

TEST(LinkModel, LosesInBurstsOfTheLengthAsked) {
  const auto found = fates({.loss = 0.05, .burst = 4});
  double bursts = 0;
  for (size_t frame = 1; frame < found.size(); ++frame) bursts += lost(found[frame]) && !lost(found[frame - 1]) ? 1 : 0;
  EXPECT_NEAR(share(found, lost), 0.05, 0.005);
  EXPECT_NEAR(share(found, lost) * kMany / bursts, 4, 0.15);
}

TEST(LinkModel, DelaysByTheDistributionAsked) {
  for (const Distribution shape : {Distribution::kNormal, Distribution::kUniform, Distribution::kExponential}) {
    const auto found = fates({.delay_ns = 10'000'000, .jitter_ns = 2'000'000, .distribution = shape});
    double sum = 0;
    double squares = 0;
    for (size_t frame = 0; frame < found.size(); ++frame) {
      const auto delay_ms = static_cast<double>(found[frame].due_ns - static_cast<int64_t>(frame) * kApart_ns) / 1e6;
      sum += delay_ms;
      squares += delay_ms * delay_ms;
    }
    const double mean_ms = sum / kMany;
    EXPECT_NEAR(mean_ms, 10, 0.03) << static_cast<int>(shape);
    EXPECT_NEAR(std::sqrt(squares / kMany - mean_ms * mean_ms), 2, 0.03) << static_cast<int>(shape);
  }
}

TEST(LinkModel, KeepsTheOrderOfFramesThatDoNotOvertake) {
  const Profile profile{.delay_ns = 5'000'000, .jitter_ns = 1'000'000, .reorder = 0.1};
  int64_t last_ns = 0;
  int frame = 0;
  for (const Fate& fate : fates(profile, 10'000, 20'000)) {
    if (fate.overtakes) {
      EXPECT_EQ(fate.due_ns, frame * int64_t{10'000});
    } else {
      EXPECT_GE(fate.due_ns, last_ns);
      last_ns = fate.due_ns;
    }
    ++frame;
  }
}

TEST(LinkModel, ChangesNothingUnlessAsked) {
  for (const Fate& fate : fates({}, kApart_ns, 1'000)) {
    EXPECT_EQ(fate.copies, 1);
    EXPECT_FALSE(fate.overtakes);
  }
}

}  // namespace
}  // namespace lagometer::link
