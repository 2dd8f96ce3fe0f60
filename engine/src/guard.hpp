// SPDX-License-Identifier: Apache-2.0
// Proof that measuring does not disturb: in the guard build, an allocation, a lock or a write by the engine between
// warm-up and drain aborts the process. In the normal build everything here is empty.
//
// A Measuring scope says "the engine's own code runs here"; a Lent scope inside it says "now the middleware's code
// runs".
#pragma once

namespace lagometer::engine {

#ifdef LAGOMETER_GUARD

namespace guard {
extern thread_local constinit int forbidden;
/// Faults that a test injects into the stamping path (environment LAGOMETER_FAULT = malloc | mutex | write).
void inject_fault();
}  // namespace guard

class Measuring {
 public:
  explicit Measuring(bool active) noexcept : active_(active) { guard::forbidden += active_ ? 1 : 0; }
  ~Measuring() { guard::forbidden -= active_ ? 1 : 0; }
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

 private:
  bool active_;
};

class Lent {
 public:
  Lent() noexcept : held_(guard::forbidden) { guard::forbidden = 0; }
  ~Lent() { guard::forbidden = held_; }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

 private:
  int held_;
};

inline void stamping_path() { guard::inject_fault(); }

#else

struct Measuring {
  explicit Measuring(bool) noexcept {}
};
struct Lent {
  Lent() noexcept {}
};
inline void stamping_path() noexcept {}

#endif

}  // namespace lagometer::engine
