// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <string>

namespace lagometer::mqtt {

namespace {

using nlohmann::json;

constexpr int kMatchedBufferBytes = 4 << 20;

int number(const json& value, const std::string& key, int least, int most) {
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most) {
    throw Error(LAGOMETER_INVALID, "mqtt: option '" + key + "' must be a whole number from " + std::to_string(least) +
                                       " to " + std::to_string(most));
  }
  return value.get<int>();
}

}  // namespace

Settings Settings::from(std::string_view profile, std::string_view options) {
  Settings settings;
  if (floor::matched_profile(abilities.adapter, profile)) {
    settings.tcp_nodelay = true;
    settings.socket_buffer_bytes = kMatchedBufferBytes;
  }
  const json document = json::parse(options.empty() ? "{}" : options, nullptr, false);
  if (!document.is_object()) throw Error(LAGOMETER_INVALID, "mqtt: options are not a JSON object");
  for (const auto& [key, value] : document.items()) {
    if (key == "tcp_nodelay") {
      if (!value.is_boolean()) throw Error(LAGOMETER_INVALID, "mqtt: option 'tcp_nodelay' must be true or false");
      settings.tcp_nodelay = value.get<bool>();
    } else if (key == "reliable_qos") {
      settings.reliable_qos = number(value, key, 1, 2);
    } else if (key == "max_inflight_messages") {
      settings.max_inflight_messages = number(value, key, 1, 65535);
    } else if (key == "max_queued_messages") {
      settings.max_queued_messages = number(value, key, 0, 65535);
    } else {
      throw Error(LAGOMETER_INVALID, "mqtt: option '" + key +
                                         "' is unknown; valid: tcp_nodelay, reliable_qos, max_inflight_messages, "
                                         "max_queued_messages");
    }
  }
  return settings;
}

json Settings::describe() const {
  const Settings usual;
  json settings = json::object();
  const auto put = [&](const char* key, const auto& value, const auto& vendor) {
    settings[key] = {{"value", value}, {"default", vendor}};
  };
  put("tcp_nodelay", tcp_nodelay, usual.tcp_nodelay);
  put("reliable_qos", reliable_qos, usual.reliable_qos);
  put("max_inflight_messages", max_inflight_messages, usual.max_inflight_messages);
  put("max_queued_messages (broker)", max_queued_messages, usual.max_queued_messages);
  put("keepalive_s", kKeepalive_s, 60);  // as in the vendor's examples: an application always sets one
  json paste = json::array();
  if (tcp_nodelay) {
    paste.push_back({{"file", "C"}, {"text", "mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);"}});
    paste.push_back({{"file", "mosquitto.conf"}, {"text", "set_tcp_nodelay true"}});
  }
  const json one = {std::string(abilities.transport)};
  return {
      {"settings", settings}, {"paste", paste}, {"transport", {{"within_process", one}, {"between_processes", one}}}};
}

}  // namespace lagometer::mqtt
