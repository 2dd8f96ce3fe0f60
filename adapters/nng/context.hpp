// SPDX-License-Identifier: Apache-2.0
// Context, node and type: what a plan's options come to, and where endpoints meet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meeting.hpp"
#include "options.hpp"

namespace lagometer::nng {

inline constexpr brokerless::Abilities abilities{
    .adapter = "nng", .transport = "", .reliable = false, .keep_all = false, .payload_bytes_max = 1ULL << 30};

/// Of a service: nng carries requests and replies over streams, and what has no room waits.
inline constexpr brokerless::Abilities service_abilities{
    .adapter = "nng", .transport = "", .reliable = true, .keep_all = false, .payload_bytes_max = 1ULL << 30};

/// What an endpoint is one end of: a topic has a socket for each end (PUB, SUB), a client (REQ) and a server (REP) have
/// one for both.
enum class Kind : uint8_t { topic, client, server };

inline constexpr int queue_messages_max = 8192;  // nng's own bound of NNG_OPT_SENDBUF and NNG_OPT_RECVBUF

/// The options of a plan, checked. Errors: one that is unknown or out of its bounds.
struct Choices {
  explicit Choices(std::string_view text);
  std::string transport;
  std::optional<int> send_buffer_messages, receive_buffer_messages;
};

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] const Choices& choices() const noexcept { return choices_; }
  [[nodiscard]] const brokerless::Meeting& meeting() const noexcept { return meeting_; }
  /// Where subscribers knock that come when its writers no longer look for them.
  [[nodiscard]] brokerless::Door& door() noexcept { return door_; }
  [[nodiscard]] std::string describe() const;

 private:
  Choices choices_;
  brokerless::Meeting meeting_;
  brokerless::Door door_;
};

using Node = PlainNode<Context>;
using Type = brokerless::Type<Context, abilities>;

/// As it was asked for. Errors: neither a topic nor a service has it.
inline brokerless::Endpoint endpoint_of(const lagometer_endpoint_config& config, Kind kind) {
  const PayloadType& type = reinterpret_cast<const Type*>(config.type)->payload;
  return {kind == Kind::topic ? abilities : service_abilities, type, config};
}

/// The name under which the server of a service is found: a topic may have the same name.
inline std::string service_folder(const std::string& service) { return "service " + service; }

/// How many messages a queue of this endpoint holds: as the option says, else the depth; none: as nng ships it.
/// Errors: nng has no queue as long as the depth.
std::optional<int> queue_messages(std::optional<int> option, const brokerless::Endpoint& endpoint);

}  // namespace lagometer::nng
