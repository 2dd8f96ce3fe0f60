// SPDX-License-Identifier: Apache-2.0
// What every adapter must refuse, as checks that throw an Error: what is not known, and what its sidecar does not list.
// binding.hpp includes it, and makes the checks of flags and bits that are not known by itself.
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lagometer/adapter.h"

namespace lagometer {

/// An error with its own status, e.g. Error(LAGOMETER_UNSUPPORTED, "udp can't be reliable").
class Error : public std::runtime_error {
 public:
  Error(lagometer_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  [[nodiscard]] lagometer_status status() const noexcept { return status_; }

 private:
  lagometer_status status_;
};

inline std::string_view view(lagometer_string text) noexcept {
  return text.data == nullptr ? std::string_view{} : std::string_view{text.data, text.size};
}
inline lagometer_string to_c(std::string_view text) noexcept { return {text.data(), text.size()}; }

/// For an adapter whose sidecar lists no security.
inline void refuse_security(std::string_view adapter, const lagometer_context_config& config) {
  if (config.security.size != 0)
    throw Error(LAGOMETER_UNSUPPORTED, std::string(adapter) + " has no security: leave it out");
}

/// For an adapter without settings: rejects every option, profiles other than the two, and security.
inline void refuse_settings(std::string_view adapter, const lagometer_context_config& config) {
  refuse_security(adapter, config);
  const std::string options(view(config.options));
  const std::string profile(view(config.profile));
  if (!options.empty() && options != "{}")
    throw Error(LAGOMETER_INVALID, std::string(adapter) + " has no options: leave out " + options);
  if (!profile.empty() && profile != "default" && profile != "matched")
    throw Error(LAGOMETER_INVALID, std::string(adapter) + " has no profile '" + profile + "'; valid: default, matched");
}

/// Whether a class says (`kTakesKeys`) that its types may have keys. The ROS 1 adapter is C++17, without `requires`.
template <typename Class, typename = void>
inline constexpr bool takes_keys = false;
template <typename Class>
inline constexpr bool takes_keys<Class, std::void_t<decltype(Class::kTakesKeys)>> = true;

/// Rejects flags and bits that this header does not know, whatever they may mean later.
template <typename Class>
void refuse_unknown(const lagometer_type_config& config) {
  const bool keyed = (config.flags & LAGOMETER_TYPE_KEYED) != 0;
  if ((config.flags & ~LAGOMETER_TYPE_KEYED) != 0)
    throw Error(LAGOMETER_INVALID, "a type with a flag that is not known: leave it out");
  if (keyed && !takes_keys<Class>) throw Error(LAGOMETER_UNSUPPORTED, "no payload type has a key: leave the flag out");
  if (takes_keys<Class> && keyed != (config.instances > 0))
    throw Error(LAGOMETER_INVALID, "a type with a key has at least 1 instance, and one without has none");
  if (keyed && view(config.name) != "bytes")
    throw Error(LAGOMETER_UNSUPPORTED, "only the type bytes can have a key: leave the flag out");
}
inline void refuse_unknown(const lagometer_endpoint_config& config) {
  constexpr uint64_t kPolicies = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY |
                                 LAGOMETER_QOS_DEADLINE | LAGOMETER_QOS_LIFESPAN | LAGOMETER_QOS_LIVELINESS |
                                 LAGOMETER_QOS_PARTITION;
  if (config.flags != 0 || config.dispatch > LAGOMETER_DISPATCH_LISTENER)
    throw Error(LAGOMETER_INVALID, "an endpoint with a flag or a dispatch that is not known: leave it out");
  if (config.qos != nullptr && (config.qos->present & ~kPolicies) != 0)
    throw Error(LAGOMETER_INVALID, "a quality of service that is not known: leave it out");
}

/// What an adapter's sidecar lists, for check_endpoint: one bit for each value, e.g. 1U << LAGOMETER_KEEP_LAST.
struct Supported {
  uint32_t dispatch, reliability, history, durability;
  uint64_t policies = 0;  ///< further ones: LAGOMETER_QOS_DEADLINE and so on
};

/// Rejects a value that the adapter does not support. `words`: all values, in the order of their numbers.
inline void refuse_value(std::string_view adapter, const char* ability, uint32_t asked, uint32_t supported,
                         std::initializer_list<const char*> words) {
  if (asked < words.size() && (supported >> asked & 1U) != 0) return;
  std::string listed;
  uint32_t number = 0;
  for (const char* word : words) {
    if ((supported >> number++ & 1U) == 0) continue;
    if (!listed.empty()) listed += ", ";
    listed += word;
  }
  const std::string given = asked < words.size() ? words.begin()[asked] : std::to_string(asked);
  throw Error(LAGOMETER_UNSUPPORTED, std::string(adapter) + " does not support " + ability + " " + given +
                                         "; its adapter.json lists " + listed);
}

/// Rejects what a reader asks for and the adapter does not support: its dispatch and each quality of service that is
/// present. A quality that is not present is the vendor's default. For a writer, use check_writer. Throws Error.
inline void check_endpoint(std::string_view adapter, const lagometer_endpoint_config& config, const Supported& has) {
  refuse_value(adapter, "dispatch", config.dispatch, has.dispatch, {"poll", "waitset", "listener"});
  if (config.qos == nullptr) return;
  const lagometer_qos& qos = *config.qos;
  if ((qos.present & LAGOMETER_QOS_RELIABILITY) != 0)
    refuse_value(adapter, "reliability", qos.reliability, has.reliability, {"best_effort", "reliable"});
  if ((qos.present & LAGOMETER_QOS_HISTORY) != 0)
    refuse_value(adapter, "history", qos.history, has.history, {"keep_last", "keep_all"});
  if ((qos.present & LAGOMETER_QOS_DURABILITY) != 0)
    refuse_value(adapter, "durability", qos.durability, has.durability, {"volatile", "transient_local"});
  constexpr std::pair<uint64_t, const char*> policies[] = {{LAGOMETER_QOS_DEADLINE, "deadline"},
                                                           {LAGOMETER_QOS_LIFESPAN, "lifespan"},
                                                           {LAGOMETER_QOS_LIVELINESS, "liveliness"},
                                                           {LAGOMETER_QOS_PARTITION, "partition"}};
  for (const auto& [bit, word] : policies) {
    if ((qos.present & bit) != 0 && (has.policies & bit) == 0)
      throw Error(LAGOMETER_UNSUPPORTED,
                  std::string(adapter) + " does not support the policy " + word + ": leave it out");
  }
}

/// The same for a writer. Its dispatch is always poll, which the adapter need not support.
inline void check_writer(std::string_view adapter, const lagometer_endpoint_config& config, Supported has) {
  has.dispatch = 1U << LAGOMETER_DISPATCH_POLL;
  check_endpoint(adapter, config, has);
}

}  // namespace lagometer
