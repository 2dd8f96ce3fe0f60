// SPDX-License-Identifier: Apache-2.0
// Sleeps 1 ms in publish, 2 ms before it signals and 3 ms in take: each must show in its own interval alone.
#include <time.h>

#include "in_process.hpp"

namespace {

void sleep_ms(long milliseconds) {
  const timespec time{.tv_sec = 0, .tv_nsec = milliseconds * 1'000'000};
  nanosleep(&time, nullptr);
}

struct Delayed : lagometer::test::Ordinary {
  static constexpr std::string_view name = "delayed";
  static void publishing() { sleep_ms(1); }
  static void signalling() { sleep_ms(2); }
  static void taking() { sleep_ms(3); }
};

}  // namespace

LAGOMETER_EXPORT_ADAPTER(lagometer::test::InProcessTraits<Delayed>)
