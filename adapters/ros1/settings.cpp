// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <ros/master.h>

namespace lagometer::ros1 {
namespace {

using nlohmann::json;

constexpr uint32_t kUdpHeaderBytes = 8;
constexpr uint32_t kUdpBlocksMax = 65535;     // they are numbered with 16 bits
constexpr uint32_t kMessageHeaderBytes = 16;  // length, and the empty layout of a UInt8MultiArray
// Also the maximum: roscpp's subscriber reads this much of a datagram, whatever it requested from the publisher.
constexpr uint32_t kDatagramBytesDefault = 1500;

[[noreturn]] void refuse(const std::string& key, const json& value, const std::string& wanted) {
  throw Error(LAGOMETER_INVALID, "ros1: option " + key + " must be " + wanted + ", not " + value.dump());
}

Transport transport(const json& value) {
  if (value == "by_reliability") return Transport::kByReliability;
  if (value == "tcpros") return Transport::kTcp;
  if (value == "udpros") return Transport::kUdp;
  refuse("transport", value, "by_reliability, tcpros or udpros");
}

uint32_t datagram_bytes(const json& value) {
  const bool whole = value.is_number_unsigned();
  if (!whole || value.get<uint64_t>() < 64 || value.get<uint64_t>() > kDatagramBytesDefault)
    refuse("max_datagram_size", value,
           "a whole number from 64 to " + std::to_string(kDatagramBytesDefault) +
               " (roscpp's subscriber reads no more of a datagram, and drops what it cut off)");
  return value.get<uint32_t>();
}

bool by_pointer(const json& value) {
  if (value == "pointer") return true;
  if (value == "reference") return false;
  refuse("publish", value, "pointer or reference");
}

void apply(const std::string& key, const json& value, Settings& settings) {
  if (key == "transport") {
    settings.transport = transport(value);
  } else if (key == "tcp_no_delay") {
    if (!value.is_boolean()) refuse(key, value, "true or false");
    settings.tcp_no_delay = value.get<bool>();
  } else if (key == "max_datagram_size") {
    settings.max_datagram_bytes = datagram_bytes(value);
  } else if (key == "publish") {
    settings.by_pointer = by_pointer(value);
  } else {
    throw Error(LAGOMETER_INVALID,
                "ros1: unknown option '" + key + "'; valid: transport, tcp_no_delay, max_datagram_size, publish");
  }
}

}  // namespace

json setting(const json& value, const json& usual) { return {{"value", value}, {"default", usual}}; }

Settings Settings::from(std::string_view profile, std::string_view options) {
  Settings settings;
  if (profile == "matched") {
    settings.tcp_no_delay = true;
  } else if (!profile.empty() && profile != "default") {
    throw Error(LAGOMETER_INVALID, "ros1: no profile '" + std::string(profile) + "'; valid: default, matched");
  }
  const json document = options.empty() ? json::object() : json::parse(options, nullptr, false);
  if (!document.is_object()) throw Error(LAGOMETER_INVALID, "ros1: options must be a JSON object");
  for (const auto& [key, value] : document.items()) apply(key, value, settings);
  return settings;
}

bool Settings::uses_udp(bool reliable) const {
  if (transport == Transport::kUdp && reliable)
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: UDPROS loses messages: ask for best_effort, or for another transport");
  return transport == Transport::kUdp || (transport == Transport::kByReliability && !reliable);
}

ros::TransportHints Settings::hints(bool udp) const {
  ros::TransportHints hints;
  if (udp) return hints.udp().maxDatagramSize(static_cast<int>(max_datagram_bytes));
  return hints.tcp().tcpNoDelay(tcp_no_delay);
}

std::string Settings::hints_code(bool udp) const {
  if (udp) return "ros::TransportHints().udp().maxDatagramSize(" + std::to_string(max_datagram_bytes) + ")";
  return std::string("ros::TransportHints().tcp().tcpNoDelay(") + (tcp_no_delay ? "true)" : "false)");
}

uint64_t Settings::udp_payload_bytes_max() const {
  return uint64_t{kUdpBlocksMax} * (max_datagram_bytes - kUdpHeaderBytes) - kMessageHeaderBytes;
}

json Settings::describe() const {
  json settings = json::object();
  if (tcp_no_delay) settings["TransportHints.tcpNoDelay"] = setting(true, false);
  if (max_datagram_bytes != kDatagramBytesDefault)
    settings["TransportHints.maxDatagramSize"] = setting(max_datagram_bytes, kDatagramBytesDefault);
  settings["Publisher.publish"] = setting(by_pointer ? "boost::shared_ptr" : "const reference", nullptr);
  settings["init_options"] = setting("NoSigintHandler | NoRosout | AnonymousName", "none");
  settings["ROS_MASTER_URI"] = setting(ros::master::getURI(), "http://localhost:11311");
  json between = json::array();
  if (transport != Transport::kUdp) between.push_back("tcp");
  if (transport != Transport::kTcp) between.push_back("udp");
  const json carried{{"within_process", {"process"}}, {"between_processes", between}};
  return {{"settings", settings}, {"paste", json::array()}, {"transport", carried}};
}

Quality::Quality(const lagometer_qos* wanted) {
  if (wanted == nullptr) return;
  constexpr uint64_t kKnown = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY;
  if ((wanted->present & ~kKnown) != 0)
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: of the QoS only reliability, history and durability mean something here");
  if ((wanted->present & LAGOMETER_QOS_RELIABILITY) != 0) reliable = wanted->reliability == LAGOMETER_RELIABLE;
  if ((wanted->present & LAGOMETER_QOS_DURABILITY) != 0 && wanted->durability != LAGOMETER_VOLATILE)
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: a latched topic keeps its newest message alone: durability is volatile");
  if ((wanted->present & LAGOMETER_QOS_HISTORY) == 0) return;
  queue_size = wanted->history == LAGOMETER_KEEP_ALL ? 0 : wanted->depth;
  constexpr uint32_t kQueueMax = INT32_MAX;  // roscpp keeps it in an int
  if (wanted->history != LAGOMETER_KEEP_ALL && (queue_size < 1 || queue_size > kQueueMax))
    throw Error(LAGOMETER_INVALID, "ros1: the depth must be from 1 to " + std::to_string(kQueueMax));
}

}  // namespace lagometer::ros1
