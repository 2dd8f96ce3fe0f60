// SPDX-License-Identifier: Apache-2.0
// What the binding must know about a socket adapter.
#pragma once

#include "waitset.hpp"

namespace lagometer::sockets {

template <typename WriterKind, typename ReaderKind>
struct SocketTraits {
  using Context = sockets::Context;
  using Node = sockets::Node;
  using Type = sockets::Type;
  using Writer = WriterKind;
  using Reader = ReaderKind;
  using Waitset = sockets::Waitset<ReaderKind>;

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
