// SPDX-License-Identifier: Apache-2.0
// What the floor adapters (shm, uds, udp, tcp) share: their configuration in checked C++ terms.
#pragma once

#include <sys/utsname.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "binding.hpp"

namespace lagometer::floor {

/// The most that a floor transport supports.
struct Abilities {
  std::string_view adapter;
  std::string_view transport;  // what carries a message, in the terms of docs/ADAPTERS.md
  bool reliable;
  bool keep_all;
  uint64_t payload_bytes_max;
  bool between_hosts = false;
};

inline constexpr int64_t blocking_ns_default = 100'000'000;
inline constexpr uint32_t depth_default = 16;
inline constexpr uint32_t depth_max = 65'536;

/// The version of a bare transport is the kernel's.
inline std::string version() {
  utsname name{};
  uname(&name);
  return std::string(name.sysname) + " " + name.release;
}

/// What describe() returns for a context: a floor has one transport, wherever the two ends are.
inline nlohmann::json describe_context(const Abilities& abilities) {
  const nlohmann::json one = {std::string(abilities.transport)};
  return {{"settings", nlohmann::json::object()},
          {"paste", nlohmann::json::array()},
          {"transport", {{"within_process", one}, {"between_processes", one}}}};
}

/// The options as JSON; rejects keys that are not among `keys`.
inline nlohmann::json parse_options(std::string_view adapter, std::string_view text,
                                    std::initializer_list<std::string_view> keys) {
  auto options = text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text, nullptr, false);
  if (!options.is_object()) throw Error(LAGOMETER_INVALID, std::string(adapter) + ": options are not a JSON object");
  std::string known;
  for (const auto key : keys) known.append(known.empty() ? "" : ", ").append(key);
  for (const auto& [key, value] : options.items()) {
    bool found = false;
    for (const auto candidate : keys) found = found || key == candidate;
    const std::string named = std::string(adapter).append(": option '").append(key).append("' ");
    if (!found) throw Error(LAGOMETER_INVALID, std::string(named).append("is unknown; valid: ").append(known));
    if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > (1LL << 30)) {
      throw Error(LAGOMETER_INVALID, named + "must be an integer from 1 to 2^30");
    }
  }
  return options;
}

/// Whether the profile is "matched"; rejects names other than that and "default".
inline bool matched_profile(std::string_view adapter, std::string_view profile) {
  if (profile == "matched") return true;
  if (profile.empty() || profile == "default") return false;
  throw Error(LAGOMETER_INVALID,
              std::string(adapter) + ": no profile '" + std::string(profile) + "'; valid: default, matched");
}

/// A payload type within an adapter's limits.
inline PayloadType payload_type(const Abilities& abilities, const lagometer_type_config& config) {
  return PayloadType(config, std::string(abilities.adapter) + ": ", abilities.payload_bytes_max);
}

/// The requested settings of an endpoint. If the caller left a policy open, the floor's defaults apply: reliable if the
/// transport supports it, keep-last 16, volatile, at most 100 ms of waiting for room.
struct Endpoint {
  Endpoint(const Abilities& abilities, const PayloadType& payload_type, const lagometer_endpoint_config& config)
      : type(payload_type),
        topic(view(config.topic)),
        dispatch(config.dispatch),
        user(config.user),
        on_data(config.on_data),
        on_event(config.on_event),
        reliable(abilities.reliable) {
    const std::string adapter(abilities.adapter);
    if (config.flags != 0 || dispatch > LAGOMETER_DISPATCH_LISTENER) {
      throw Error(LAGOMETER_INVALID, adapter + ": unknown flag or dispatch mode for topic '" + topic + "'");
    }
    if (dispatch == LAGOMETER_DISPATCH_LISTENER && on_data == nullptr) {
      throw Error(LAGOMETER_INVALID, adapter + ": dispatch by listener without on_data for topic '" + topic + "'");
    }
    if (config.qos != nullptr) apply(abilities, *config.qos);
  }

  /// What a subscriber announces to publishers.
  [[nodiscard]] nlohmann::json facts() const {
    return {{"type", type.name},
            {"bytes_max", type.bytes_max},
            {"reliable", reliable},
            {"keep_all", keep_all},
            {"depth", depth}};
  }

  /// Why this publisher can't serve a subscriber with these facts; empty if it can.
  [[nodiscard]] std::string mismatch(const nlohmann::json& subscriber) const {
    const auto other = subscriber.at("type").get<std::string>();
    const auto other_bytes = subscriber.at("bytes_max").get<uint64_t>();
    if (other != type.name) return "the publisher's type is '" + type.name + "', the subscriber's '" + other + "'";
    if (type.fixed ? other_bytes != type.bytes_max : other_bytes < type.bytes_max) {
      return "the publisher's messages have up to " + std::to_string(type.bytes_max) + " bytes, the subscriber's " +
             std::to_string(other_bytes);
    }
    if (subscriber.at("reliable").get<bool>() && !reliable)
      return "the subscriber is reliable, the publisher best-effort";
    return {};
  }

  /// Reports a subscriber that can't be served.
  void refuse(const std::string& why, uint64_t total) const noexcept {
    log(LAGOMETER_LOG_WARNING, "topic '" + topic + "' not matched: " + why);
    if (on_event != nullptr) on_event(user, LAGOMETER_EVENT_INCOMPATIBLE_QOS, total);
  }

  PayloadType type;
  std::string topic;
  uint32_t dispatch;
  void* user;
  lagometer_data_function on_data;
  lagometer_event_function on_event;
  bool reliable;
  bool keep_all = false;
  uint32_t depth = depth_default;
  int64_t blocking_ns_max = blocking_ns_default;

 private:
  void apply(const Abilities& abilities, const lagometer_qos& qos) {
    const std::string adapter(abilities.adapter);
    constexpr uint64_t known = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY;
    if ((qos.present & ~known) != 0) {
      throw Error(LAGOMETER_UNSUPPORTED,
                  adapter + ": only reliability, history and durability can be set (topic '" + topic + "')");
    }
    if ((qos.present & LAGOMETER_QOS_DURABILITY) != 0 && qos.durability != LAGOMETER_VOLATILE) {
      throw Error(LAGOMETER_UNSUPPORTED,
                  adapter + ": keeps nothing for late joiners: durability must be volatile (topic '" + topic + "')");
    }
    if ((qos.present & LAGOMETER_QOS_RELIABILITY) != 0) {
      reliable = qos.reliability == LAGOMETER_RELIABLE;
      if (reliable && !abilities.reliable) {
        throw Error(LAGOMETER_UNSUPPORTED,
                    adapter + ": cannot be reliable; ask for best_effort (topic '" + topic + "')");
      }
      if (qos.blocking_ns_max > 0) blocking_ns_max = qos.blocking_ns_max;
    }
    if ((qos.present & LAGOMETER_QOS_HISTORY) == 0) return;
    keep_all = qos.history == LAGOMETER_KEEP_ALL;
    if (keep_all && !abilities.keep_all) {
      throw Error(LAGOMETER_UNSUPPORTED, adapter + ": cannot keep all; ask for keep_last (topic '" + topic + "')");
    }
    if (keep_all) return;
    depth = qos.depth;
    if (depth < 1 || depth > depth_max) {
      throw Error(LAGOMETER_INVALID,
                  adapter + ": the depth must be 1 to " + std::to_string(depth_max) + " (topic '" + topic + "')");
    }
  }
};

/// The payload type of an adapter with these abilities, as the binding creates it.
template <typename Context, const Abilities& abilities>
struct Type {
  Type(Context&, const lagometer_type_config& config) : payload(payload_type(abilities, config)) {}
  static Endpoint endpoint(const lagometer_endpoint_config& config) {
    return {abilities, reinterpret_cast<const Type*>(config.type)->payload, config};
  }
  PayloadType payload;
};

/// now + duration, without overflow.
inline int64_t later(int64_t now, int64_t duration_ns) noexcept {
  constexpr int64_t never = std::numeric_limits<int64_t>::max();
  return duration_ns > never - now ? never : now + duration_ns;
}

}  // namespace lagometer::floor
