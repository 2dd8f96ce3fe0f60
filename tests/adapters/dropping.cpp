// SPDX-License-Identifier: Apache-2.0
// Accepts every tenth message of a writer and never delivers it.
#include "in_process.hpp"

namespace {

struct Dropping : lagometer::test::Ordinary {
  static constexpr std::string_view name = "dropping";
  static bool drops(uint64_t number) { return number % 10 == 9; }
};

}  // namespace

LAGOMETER_EXPORT_ADAPTER(lagometer::test::InProcessTraits<Dropping>)
