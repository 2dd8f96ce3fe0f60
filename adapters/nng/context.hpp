// SPDX-License-Identifier: Apache-2.0
// Context, node and type: the values of a plan's options, and where endpoints find each other.
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

/// For services: nng carries requests and replies over streams, and messages without room wait.
inline constexpr brokerless::Abilities service_abilities{
    .adapter = "nng", .transport = "", .reliable = true, .keep_all = false, .payload_bytes_max = 1ULL << 30};

/// What an endpoint is one end of: a topic has a socket for each end (PUB, SUB); a client (REQ) and a server (REP) have
/// one for both.
enum class Kind : uint8_t { topic, client, server };

inline constexpr int queue_messages_max = 8192;  // nng's own limit for NNG_OPT_SENDBUF and NNG_OPT_RECVBUF

/// The options of a plan, checked. Errors: an option is unknown or out of bounds.
struct Choices {
  explicit Choices(std::string_view text);
  std::optional<std::string> transport;
  std::optional<int> send_buffer_messages, receive_buffer_messages;
};

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] const Choices& choices() const noexcept { return choices_; }
  [[nodiscard]] const brokerless::Meeting& meeting() const noexcept { return meeting_; }
  /// Where subscribers knock that come after its writers have stopped looking for them.
  [[nodiscard]] brokerless::Door& door() noexcept { return door_; }
  [[nodiscard]] std::string describe() const;

 private:
  Choices choices_;
  brokerless::Meeting meeting_;
  brokerless::Door door_;
};

using Node = PlainNode<Context>;
using Type = brokerless::Type<Context, abilities>;

/// The requested settings. Errors: neither topics nor services support them.
inline brokerless::Endpoint endpoint_of(const lagometer_endpoint_config& config, Kind kind) {
  const PayloadType& type = reinterpret_cast<const Type*>(config.type)->payload;
  return {kind == Kind::topic ? abilities : service_abilities, type, config};
}

/// The name under which a service's server is found; a topic may have the same name.
inline std::string service_folder(const std::string& service) { return "service " + service; }

/// How many messages a queue of this endpoint holds: as the option says, otherwise the depth; nothing: nng's default.
/// Errors: nng has no queue as long as the depth.
std::optional<int> queue_messages(std::optional<int> option, const brokerless::Endpoint& endpoint);

}  // namespace lagometer::nng
