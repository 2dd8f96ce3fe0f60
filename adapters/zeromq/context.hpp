// SPDX-License-Identifier: Apache-2.0
// Context, node and type: what a plan's options come to, and where endpoints meet.
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

/// The options of a plan, checked. Errors: one that is unknown or out of its bounds.
struct Choices {
  explicit Choices(std::string_view text);
  std::string transport;
  int io_threads;
  std::optional<int> send_hwm, receive_hwm, socket_buffer_bytes;
};

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] const Choices& choices() const noexcept { return choices_; }
  [[nodiscard]] const brokerless::Meeting& meeting() const noexcept { return meeting_; }
  /// Where subscribers knock that come when its writers no longer look for them.
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

/// The name under which the server of a service is found: a topic may have the same name.
inline std::string service_folder(const std::string& service) { return "service " + service; }
using Type = brokerless::Type<Context, abilities>;

}  // namespace lagometer::zeromq
