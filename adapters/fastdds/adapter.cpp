// SPDX-License-Identifier: Apache-2.0
// The adapter for eProsima Fast DDS: its description, and its only exported symbol.
#include "binding.hpp"
#include "context.hpp"
#include "describe.hpp"
#include "layer_stamps.hpp"
#include "reader.hpp"
#include "waitset.hpp"
#include "writer.hpp"

namespace lagometer::fastdds {

struct Traits {
  using Context = fastdds::Context;
  using Node = fastdds::Node;
  using Type = fastdds::Type;
  using Writer = fastdds::Writer;
  using Reader = fastdds::Reader;
  using Waitset = fastdds::Waitset;
  static constexpr std::string_view name = "fastdds";
  static std::string probe(std::string_view) { return fastdds::probe(); }
  static std::string describe(uint32_t kind, const void* object) { return fastdds::describe(kind, object); }
  static const void* extension(uint32_t kind, void*, std::string_view asked) noexcept {
    return stamps_extension<Writer, Reader>(kind, asked, LAGOMETER_KEY_SEQUENCE);
  }
};

}  // namespace lagometer::fastdds

LAGOMETER_EXPORT_ADAPTER(lagometer::fastdds::Traits)
