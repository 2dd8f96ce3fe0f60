// SPDX-License-Identifier: Apache-2.0
// What the binding needs to know of a stream adapter.
#pragma once

#include "stream_reader.hpp"
#include "stream_writer.hpp"
#include "waitset.hpp"

namespace lagometer::sockets {

struct StreamTraits {
  using Context = sockets::Context;
  using Node = sockets::Node;
  using Type = sockets::Type;
  using Writer = StreamWriter;
  using Reader = StreamReader;
  using Waitset = sockets::Waitset<StreamReader>;

  static std::string probe(std::string_view) { return probe_socket(); }
  static std::string describe(uint32_t kind, const void* object) {
    if (kind == LAGOMETER_OBJECT_WRITER) return static_cast<const Writer*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_READER) return static_cast<const Reader*>(object)->describe();
    if (kind == LAGOMETER_OBJECT_CONTEXT) return floor::describe_context(abilities).dump();
    return R"({"settings":{},"paste":[]})";
  }
  static const void* extension(uint32_t, void*, std::string_view) noexcept { return nullptr; }
};

}  // namespace lagometer::sockets
