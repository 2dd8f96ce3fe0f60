// SPDX-License-Identifier: Apache-2.0
// Prints on standard output whenever it can, as middleware does: buffered, unbuffered, and from a thread of its own.
#include <unistd.h>

#include <cstdio>

#include "in_process.hpp"

namespace {

void shout(const char* where) {
  std::printf("[INFO] {\"event\":\"failed\"} noise at %s\n", where);
  std::fflush(stdout);
  static constexpr std::string_view kRaw = "\x01\xff{{{ raw noise, no line end";
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, kRaw.data(), kRaw.size());
}

struct Noisy : lagometer::test::Ordinary {
  static constexpr std::string_view name = "noisy";
  static void created() { shout("create"); }
  static void publishing() { shout("commit"); }
  static void signalling() { shout("delivery"); }
};

[[maybe_unused]] const bool kLoaded = (shout("load"), true);

}  // namespace

LAGOMETER_EXPORT_ADAPTER(lagometer::test::InProcessTraits<Noisy>)
