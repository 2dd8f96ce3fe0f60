// SPDX-License-Identifier: Apache-2.0
// Lends dirty buffers, and appends every payload that it is to send to the file that LAGOMETER_TEST_WITNESS names.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "in_process.hpp"

namespace {

struct Witness : lagometer::test::Ordinary {
  static constexpr std::string_view name = "toy";
  static void lending(std::span<uint8_t> payload) { std::fill(payload.begin(), payload.end(), uint8_t{0xAA}); }
  static void sending(std::span<const uint8_t> payload) {
    static const int file =
        open(std::getenv("LAGOMETER_TEST_WITNESS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    [[maybe_unused]] const auto written = write(file, payload.data(), payload.size());
  }
};

}  // namespace

LAGOMETER_EXPORT_ADAPTER(lagometer::test::InProcessTraits<Witness>)
