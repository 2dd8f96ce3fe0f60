// SPDX-License-Identifier: Apache-2.0
// Context, node and type: the values of a plan's options, and where endpoints find each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meeting.hpp"
#include "options.hpp"
#include "socket.hpp"

namespace lagometer::zeromq {

inline constexpr brokerless::Abilities abilities{
    .adapter = "zeromq", .transport = "", .reliable = true, .keep_all = true, .payload_bytes_max = 1ULL << 30};

/// The options of a plan, checked. Errors: an option is unknown or out of bounds.
struct Choices {
  explicit Choices(std::string_view text);
  std::optional<std::string> transport;
  int io_threads;
  std::optional<int> send_hwm, receive_hwm, socket_buffer_bytes;
};

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] const Choices& choices() const noexcept { return choices_; }
  [[nodiscard]] const brokerless::Meeting& meeting() const noexcept { return meeting_; }
  /// Where subscribers knock that come after its writers have stopped looking for them.
  [[nodiscard]] brokerless::Door& door() noexcept { return door_; }
  [[nodiscard]] const std::shared_ptr<Library>& library() const noexcept { return library_; }
  [[nodiscard]] std::string describe() const;

 private:
  Choices choices_;
  brokerless::Meeting meeting_;
  brokerless::Door door_;
  std::shared_ptr<Library> library_;
};

using Node = PlainNode<Context>;

/// The name under which a service's server is found; a topic may have the same name.
inline std::string service_folder(const std::string& service) { return "service " + service; }
using Type = brokerless::Type<Context, abilities>;

}  // namespace lagometer::zeromq
