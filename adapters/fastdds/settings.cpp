// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <fastrtps/config.h>
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace lagometer::fastdds {
namespace {

using nlohmann::json;

constexpr uint32_t kPeersMax = 10000;

json parse_object(lagometer_string text, const std::string& what) {
  if (view(text).empty()) return json::object();
  json value = json::parse(view(text), nullptr, false);
  if (!value.is_object()) throw Error(LAGOMETER_INVALID, "fastdds: " + what + " must be a JSON object");
  return value;
}

uint32_t number(const json& value, const std::string& key) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() == 0 || value.get<uint64_t>() > INT32_MAX) {
    throw Error(LAGOMETER_INVALID,
                "fastdds: " + key + " must be a whole number from 1 to 2147483647, not " + value.dump());
  }
  return value.get<uint32_t>();
}

Transport transport(const json& value) {
  if (value == "default") return Transport::kStandard;
  if (value == "udp") return Transport::kUdp;
  if (value == "shm") return Transport::kShm;
  if (value == "tcp") return Transport::kTcp;
  if (value == "data_sharing") return Transport::kDataSharing;
  throw Error(LAGOMETER_INVALID,
              "fastdds: option transport must be default, udp, shm, tcp or data_sharing, not " + value.dump());
}

IntraProcess intra_process(const json& value) {
  if (value == "full") return IntraProcess::kFull;
  if (value == "user_data_only") return IntraProcess::kUserDataOnly;
  if (value == "off") return IntraProcess::kOff;
  throw Error(LAGOMETER_INVALID,
              "fastdds: option intra_process must be full, user_data_only or off, not " + value.dump());
}

// Whether an option with two values has the second one.
bool second_of(const char* first, const char* second, const json& value, const std::string& key) {
  refuse(value != first && value != second,
         "option " + key + " must be " + first + " or " + second + ", not " + value.dump());
  return value == second;
}

bool flag(const json& value, const std::string& key) {
  refuse(!value.is_boolean(), "option " + key + " must be true or false, not " + value.dump());
  return value.get<bool>();
}

Settings profile_settings(std::string_view profile) {
  Settings settings;
  if (profile.empty() || profile == "default") return settings;
  if (profile != "matched") {
    throw Error(LAGOMETER_INVALID, "fastdds: unknown profile \"" + std::string(profile) + "\": use default or matched");
  }
  settings.transport = Transport::kUdp;
  settings.socket_buffer_bytes = kMatchedSocketBufferBytes;
  settings.max_message_bytes = kSocketMessageBytesMax;
  return settings;
}

// Returns whether there is such an option.
bool apply_number(const std::string& key, const json& value, Settings& settings) {
  const std::pair<const char*, uint32_t Settings::*> numbers[] = {
      {"socket_buffer_bytes", &Settings::socket_buffer_bytes},
      {"max_message_size", &Settings::max_message_bytes},
      {"shm_segment_bytes", &Settings::shm_segment_bytes},
      {"heartbeat_period_ms", &Settings::heartbeat_period_ms},
      {"deadline_ms", &Settings::deadline_ms},
  };
  for (const auto& [name, field] : numbers) {
    if (key != name) continue;
    settings.*field = number(value, key);
    return true;
  }
  return false;
}

void apply_options(const json& options, Settings& settings) {
  // If an option selects the transport, numbers of the profile that belong to another transport are dropped.
  if (options.contains("transport")) {
    settings.transport = transport(options["transport"]);
    if (!settings.uses_sockets()) settings.socket_buffer_bytes = 0;
  }
  for (const auto& [key, value] : options.items()) {
    if (key == "transport" || apply_number(key, value, settings)) continue;
    if (key == "publish_mode") {
      settings.publish_mode_asked = true;
      settings.synchronous = !second_of("sync", "async", value, key);
    } else if (key == "intra_process") {
      settings.intra_process_asked = true;
      settings.intra_process = intra_process(value);
    } else if (key == "tcp_nodelay") {
      settings.tcp_nodelay = flag(value, key);
    } else if (key == "discovery") {
      settings.discovery_server = second_of("simple", "server", value, key);
    } else {
      throw Error(LAGOMETER_INVALID,
                  "fastdds: unknown option \"" + key +
                      "\": use transport, publish_mode, intra_process, discovery, deadline_ms, tcp_nodelay, "
                      "socket_buffer_bytes, max_message_size, shm_segment_bytes or heartbeat_period_ms");
    }
  }
}

// Fast DDS would log these and continue without the transport: the trial would then measure a different one.
void check_transport(const Settings& settings) {
  const uint32_t message_bytes = settings.max_message_bytes == 0 ? kSocketMessageBytesMax : settings.max_message_bytes;
  const uint32_t segment_bytes = settings.shm_segment_bytes == 0 ? kShmSegmentBytesDefault : settings.shm_segment_bytes;
  refuse(settings.socket_buffer_bytes != 0 && !settings.uses_sockets(),
         "option socket_buffer_bytes has no meaning with transport shm: leave it out");
  refuse(settings.shm_segment_bytes != 0 && !settings.uses_shm(),
         "option shm_segment_bytes has no meaning with UDP or TCP alone: leave it out or choose transport shm");
  refuse(settings.tcp_nodelay && !settings.uses_tcp(),
         "option tcp_nodelay has no meaning without TCP: leave it out or choose transport tcp");
  refuse(message_bytes < 1024, "option max_message_size must be at least 1024");
  refuse(settings.uses_sockets() && message_bytes > kSocketMessageBytesMax,
         "option max_message_size can be at most 65500 with UDP and TCP; transport shm allows more");
  refuse(settings.uses_sockets() && settings.socket_buffer_bytes != 0 && settings.socket_buffer_bytes < message_bytes,
         "option socket_buffer_bytes must be at least max_message_size, " + std::to_string(message_bytes));
  refuse(settings.uses_shm() && segment_bytes < message_bytes,
         "option shm_segment_bytes must be at least max_message_size, " + std::to_string(message_bytes));
}

// The vendor's server of 2.9 only listens on UDP, and introduces clients of all domains to each other.
void check_discovery(const Settings& settings, uint32_t domain) {
  if (!settings.discovery_server) return;
  refuse(!settings.uses_udp(),
         "option discovery: server needs a transport with UDP, on which the vendor's server listens: choose transport "
         "default, udp or data_sharing");
  refuse(domain != 0, "option discovery: server works in domain 0 only, not in " + std::to_string(domain) +
                          ": the vendor's server does not keep domains apart");
}

void check_security(const Settings& settings) {
  if (!settings.security) return;
#if !HAVE_SECURITY
  throw Error(LAGOMETER_UNSUPPORTED, "fastdds: this Fast DDS is built without security: leave it out");
#endif
  if (settings.transport == Transport::kDataSharing)
    throw Error(LAGOMETER_UNSUPPORTED,
                "fastdds: what is shared by transport data_sharing is neither signed nor encrypted: choose another "
                "transport");
}

// By default, Fast DDS announces itself by multicast on every interface that is up. That is right if the only one is a
// loopback with multicast, as in a private network namespace.
bool only_loopback_with_multicast() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  bool loopback_multicast = false;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) == 0) return false;
    loopback_multicast = loopback_multicast || (entry->ifa_flags & IFF_MULTICAST) != 0;
  }
  return loopback_multicast;
}

void apply_network(const json& network, Settings& settings) {
  bool loopback = false;
  for (const auto& [key, value] : network.items()) {
    if (key == "loopback") {
      refuse(!value.is_boolean(), "network key loopback must be true or false, not " + value.dump());
      loopback = value.get<bool>();
    } else if (key == "peers") {
      refuse(!value.is_number_unsigned() || value.get<uint64_t>() > kPeersMax,
             "network key peers must be a whole number up to " + std::to_string(kPeersMax) + ", not " + value.dump());
      settings.peers = value.get<uint32_t>();
    } else if (key == "address") {
      refuse(!value.is_string(), "network key address must be a text, not " + value.dump());
      settings.own_address = value.get<std::string>();
    } else if (key != "hosts" && key != "trial") {  // multicast finds the peers, and domains separate trials
      throw Error(LAGOMETER_INVALID,
                  "fastdds: unknown network key \"" + key + "\": use loopback, peers, address, hosts or trial");
    }
  }
  settings.loopback_only = loopback && settings.uses_udp() && !only_loopback_with_multicast();
}

}  // namespace

Settings parse_settings(const lagometer_context_config& config) {
  Settings settings = profile_settings(view(config.profile));
  apply_options(parse_object(config.options, "options"), settings);
  check_transport(settings);
  check_discovery(settings, config.domain);
  settings.security = dds_security::parse(config.security, "fastdds");
  check_security(settings);
  apply_network(parse_object(config.network, "network"), settings);
  if (const char* file = std::getenv(kProfilesVariable); file != nullptr) settings.profiles_file = file;
  return settings;
}

}  // namespace lagometer::fastdds
