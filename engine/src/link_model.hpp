// SPDX-License-Identifier: Apache-2.0
// What an emulated link does to each frame. The decision depends only on random numbers; it reads no clock.
#pragma once

#include <cstdint>

#include "random.hpp"

namespace lagometer::link {

enum class Distribution : uint8_t { kNormal, kUniform, kExponential };

/// Probabilities are per frame. loss: the long-run share of lost frames, in bursts of `burst` frames on average;
/// jitter_ns: the standard deviation of the delay; reorder: the share that overtakes all others, without any delay.
struct Profile {
  int64_t delay_ns = 0;
  int64_t jitter_ns = 0;
  Distribution distribution = Distribution::kNormal;
  double loss = 0;
  double burst = 1;
  double reorder = 0;
  double duplicate = 0;
};

/// What happens to one frame. copies: 0 if it is lost; overtakes: it leaves at once, before those in front of it.
struct Fate {
  int copies = 1;
  bool overtakes = false;
  int64_t due_ns = 0;
};

/// One direction of a link. Frames keep their order, as on radio links that deliver in order (3GPP TS 38.322, IEEE
/// 802.11 block acknowledgement), except those that `reorder` lets overtake.
class Model {
 public:
  Model(const Profile& profile, uint64_t seed) : profile_(profile), random_(seed) {}

  /// Applies from the next frame on.
  void change(int64_t delay_ns, int64_t jitter_ns, double loss) {
    profile_.delay_ns = delay_ns;
    profile_.jitter_ns = jitter_ns;
    profile_.loss = loss;
  }

  /// For the next frame, which arrived at now_ns.
  Fate next(int64_t now_ns) {
    if (loses()) return {.copies = 0, .overtakes = false, .due_ns = now_ns};
    Fate fate;
    if (profile_.duplicate > 0 && random_.uniform() <= profile_.duplicate) fate.copies = 2;
    if (profile_.reorder > 0 && random_.uniform() <= profile_.reorder) {
      fate.overtakes = true;
      fate.due_ns = now_ns;
      return fate;
    }
    const int64_t due_ns = now_ns + delay_ns();
    last_due_ns_ = due_ns > last_due_ns_ ? due_ns : last_due_ns_;
    fate.due_ns = last_due_ns_;
    return fate;
  }

 private:
  /// Gilbert's model (1960) with two states: nothing is lost in the good state, everything in the bad one. With bursts
  /// of one frame on average, losses would still be correlated, so independent losses are drawn separately.
  bool loses() {
    if (profile_.loss <= 0) return false;
    if (profile_.burst <= 1) return random_.uniform() <= profile_.loss;
    if (profile_.loss >= 1) return true;
    const double leave = 1 / profile_.burst;
    const double enter = leave * profile_.loss / (1 - profile_.loss);
    bad_ = bad_ ? random_.uniform() > leave : random_.uniform() <= enter;
    return bad_;
  }

  int64_t delay_ns() {
    if (profile_.jitter_ns == 0) return profile_.delay_ns;
    const double deviations = drawn();
    const auto delay_ns =
        profile_.delay_ns + static_cast<int64_t>(deviations * static_cast<double>(profile_.jitter_ns));
    return delay_ns > 0 ? delay_ns : 0;
  }

  /// Mean 0, standard deviation 1.
  double drawn() {
    switch (profile_.distribution) {
      case Distribution::kUniform:
        return (random_.uniform() * 2 - 1) * 1.7320508075688772;
      case Distribution::kExponential:
        return random_.exponential() - 1;
      case Distribution::kNormal:
        break;
    }
    return random_.normal();
  }

  Profile profile_;
  engine::Random random_;
  int64_t last_due_ns_ = 0;
  bool bad_ = false;
};

}  // namespace lagometer::link
