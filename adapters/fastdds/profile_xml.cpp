// SPDX-License-Identifier: Apache-2.0
#include "profile_xml.hpp"

#include <fastdds/rtps/attributes/ServerAttributes.h>

#include <algorithm>

namespace lagometer::fastdds {
namespace {

std::string element(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name + ">";
}
std::string element(const std::string& name, uint64_t number) { return element(name, std::to_string(number)); }

constexpr const char* kHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

std::string document(const std::string& content) {
  return std::string(kHead) + "<profiles xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">\n" + content +
         "</profiles>\n";
}

std::string socket_sizes(const Settings& settings) {
  std::string text;
  if (settings.socket_buffer_bytes != 0) {
    text += element("sendBufferSize", settings.socket_buffer_bytes) +
            element("receiveBufferSize", settings.socket_buffer_bytes);
  }
  if (settings.max_message_bytes != 0) text += element("maxMessageSize", settings.max_message_bytes);
  return text;
}

std::string udp_descriptor(const Settings& settings) {
  std::string text = element("transport_id", "lagometer_udp") + element("type", "UDPv4") + socket_sizes(settings);
  if (!settings.own_address.empty()) text += element("interfaceWhiteList", element("address", settings.own_address));
  if (settings.loopback_only) {
    text += element("maxInitialPeersRange", std::max(kInitialPeersDefault, settings.peers + 1));
    text += element("interfaceWhiteList", element("address", kLoopback));
  }
  return "    " + element("transport_descriptor", text) + "\n";
}

std::string tcp_descriptor(const Settings& settings, const TcpPlace& place) {
  std::string text = element("transport_id", "lagometer_tcp") + element("type", "TCPv4") + socket_sizes(settings) +
                     element("interfaceWhiteList", element("address", kLoopback)) +
                     element("listening_ports", element("port", place.own().port));
  if (settings.tcp_nodelay) text += element("enable_tcp_nodelay", "true");
  return "    " + element("transport_descriptor", text) + "\n";
}

std::string shm_descriptor(const Settings& settings) {
  std::string text = element("transport_id", "lagometer_shm") + element("type", "SHM");
  if (settings.shm_segment_bytes != 0) text += element("segment_size", settings.shm_segment_bytes);
  if (settings.max_message_bytes != 0) text += element("maxMessageSize", settings.max_message_bytes);
  return "    " + element("transport_descriptor", text) + "\n";
}

std::string time(const eprosima::fastrtps::Duration_t& duration) {
  return element("sec", static_cast<uint64_t>(duration.seconds)) + element("nanosec", duration.nanosec);
}

std::string udp_locator_xml(const std::string& port) {
  return element("locator", element("udpv4", port + element("address", kLoopback)));
}

std::string tcp_locator_xml(const TcpEnd& end) {
  return element("locator", element("tcpv4", element("physical_port", end.port) + element("port", end.logical_port) +
                                                 element("address", kLoopback)));
}

std::string initial_peers(const Settings& settings, const TcpPlace* place) {
  std::string peers;
  if (settings.loopback_only && !settings.discovery_server) peers = udp_locator_xml("");
  if (place != nullptr) {
    for (const TcpEnd& end : place->peers()) peers += tcp_locator_xml(end);
  }
  return peers.empty() ? "" : element("initialPeersList", peers);
}

std::string discovery_server() {
  const std::string address =
      element("metatrafficUnicastLocatorList", udp_locator_xml(element("port", kDiscoveryServerPort)));
  return element("discoveryServersList", "<RemoteServer prefix=\"" +
                                             std::string(eprosima::fastdds::rtps::DEFAULT_ROS2_SERVER_GUIDPREFIX) +
                                             "\">" + address + "</RemoteServer>");
}

std::string builtin(const Settings& settings, const TcpPlace* place) {
  const std::string period = element("sec", 0) + element("nanosec", kAnnouncementPeriodNs);
  const std::string announcements = element("count", kAnnouncements) + element("period", period);
  std::string discovery = element("initialAnnouncements", announcements);
  if (settings.discovery_server) {
    discovery = element("discoveryProtocol", "CLIENT") + discovery + discovery_server();
  }
  if (place != nullptr) discovery += element("leaseAnnouncement", element("sec", kTcpLaterAnnouncementPeriodS));
  std::string text = element("discovery_config", discovery);
  if (place != nullptr) text += element("metatrafficUnicastLocatorList", tcp_locator_xml(place->own()));
  text += initial_peers(settings, place);
  return "      " + element("builtin", text) + "\n";
}

std::string liveliness(const dds::LivelinessQosPolicy& policy) {
  const bool manual = policy.kind == dds::MANUAL_BY_TOPIC_LIVELINESS_QOS;
  std::string text = element("kind", manual ? "MANUAL_BY_TOPIC" : "AUTOMATIC");
  text += element("lease_duration", time(policy.lease_duration));
  return element("liveliness", text + element("announcement_period", time(policy.announcement_period)));
}

// The policies common to writers and readers, where they differ from the vendor's default; in the schema's order.
template <typename Qos>
std::string shared_policies(const Qos& qos, const Qos& vendor) {
  std::string text;
  if (qos.durability().kind != vendor.durability().kind) {
    const bool kept = qos.durability().kind == dds::TRANSIENT_LOCAL_DURABILITY_QOS;
    text += element("durability", element("kind", kept ? "TRANSIENT_LOCAL" : "VOLATILE"));
  }
  if (qos.deadline().period != vendor.deadline().period) {
    text += element("deadline", element("period", time(qos.deadline().period)));
  }
  if (qos.lifespan().duration != vendor.lifespan().duration) {
    text += element("lifespan", element("duration", time(qos.lifespan().duration)));
  }
  if (!(qos.liveliness() == vendor.liveliness())) text += liveliness(qos.liveliness());
  if (!(qos.reliability() == vendor.reliability())) {
    const bool reliable = qos.reliability().kind == dds::RELIABLE_RELIABILITY_QOS;
    text += element("reliability", element("kind", reliable ? "RELIABLE" : "BEST_EFFORT") +
                                       element("max_blocking_time", time(qos.reliability().max_blocking_time)));
  }
  if (qos.data_sharing().kind() != vendor.data_sharing().kind()) {
    const bool off = qos.data_sharing().kind() == dds::DataSharingKind::OFF;
    text += element("data_sharing", element("kind", off ? "OFF" : "ON"));
  }
  return text;
}

template <typename Qos>
std::string history(const Qos& qos, const Qos& vendor) {
  if (qos.history() == vendor.history()) return {};
  const bool all = qos.history().kind == dds::KEEP_ALL_HISTORY_QOS;
  const std::string depth = all ? "" : element("depth", static_cast<uint64_t>(qos.history().depth));
  return "    " + element("topic", element("historyQos", element("kind", all ? "KEEP_ALL" : "KEEP_LAST") + depth)) +
         "\n";
}

template <typename Qos>
std::string partitions(const Qos& qos) {
  const std::string* names = rtps::PropertyPolicyHelper::find_property(qos.properties(), "partitions");
  return names == nullptr ? "" : element("partition", element("names", element("name", *names)));
}

std::string endpoint(const std::string& kind, const std::string& topic, const std::string& policies,
                     const std::string& times = {}) {
  const std::string qos = policies.empty() ? "" : "    " + element("qos", policies) + "\n";
  return document("  <" + kind + " profile_name=\"lagometer_" + kind + "\" is_default_profile=\"true\">\n" + topic +
                  qos + times + "  </" + kind + ">\n");
}

}  // namespace

std::string participant_profile(const Settings& settings, const TcpPlace* place) {
  std::string descriptors;
  std::string ids;
  if (settings.uses_udp()) {
    descriptors += udp_descriptor(settings);
    ids += element("transport_id", "lagometer_udp");
  }
  if (settings.uses_shm()) {
    descriptors += shm_descriptor(settings);
    ids += element("transport_id", "lagometer_shm");
  }
  std::string number;
  if (place != nullptr) {
    descriptors += tcp_descriptor(settings, *place);
    ids += element("transport_id", "lagometer_tcp");
    number = "      " + element("participantID", place->participant()) + "\n      " +
             element("defaultUnicastLocatorList", tcp_locator_xml(place->own())) + "\n";
  }
  const std::string participant =
      "  <participant profile_name=\"lagometer\" is_default_profile=\"true\">\n    <rtps>\n";
  const std::string end = "    </rtps>\n  </participant>\n";
  if (settings.builtin_transports()) return document(participant + builtin(settings, place) + end);
  return document("  <transport_descriptors>\n" + descriptors + "  </transport_descriptors>\n" + participant + number +
                  builtin(settings, place) + "      " + element("userTransports", ids) + "\n      " +
                  element("useBuiltinTransports", "false") + "\n" + end);
}

std::string library_settings(IntraProcess intra_process) {
  const std::string delivery = element("intraprocess_delivery", name_of(intra_process));
  return std::string(kHead) + "<dds xmlns=\"http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles\">\n  " +
         element("library_settings", delivery) + "\n</dds>\n";
}

std::string writer_profile(const dds::DataWriterQos& qos) {
  const dds::DataWriterQos vendor;
  std::string policies = shared_policies(qos, vendor);
  if (qos.publish_mode().kind != vendor.publish_mode().kind) {
    policies += element("publishMode", element("kind", "ASYNCHRONOUS"));
  }
  std::string times;
  const auto& heartbeat = qos.reliable_writer_qos().times.heartbeatPeriod;
  if (heartbeat != vendor.reliable_writer_qos().times.heartbeatPeriod) {
    times = "    " + element("times", element("heartbeatPeriod", time(heartbeat))) + "\n";
  }
  return endpoint("data_writer", history(qos, vendor), policies + partitions(qos), times);
}

std::string reader_profile(const dds::DataReaderQos& qos) {
  const dds::DataReaderQos vendor;
  return endpoint("data_reader", history(qos, vendor), shared_policies(qos, vendor) + partitions(qos));
}

}  // namespace lagometer::fastdds
