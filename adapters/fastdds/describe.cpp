// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <dlfcn.h>

#include <fastdds/rtps/transport/TCPTransportDescriptor.h>
#include <fastdds/rtps/transport/UDPTransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/config.h>
#include <algorithm>
#include <cstring>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "profile_xml.hpp"
#include "reader.hpp"
#include "writer.hpp"

namespace lagometer::fastdds {
namespace {

using nlohmann::json;
using UdpTransport = eprosima::fastdds::rtps::UDPTransportDescriptor;
using TcpTransport = eprosima::fastdds::rtps::TCPTransportDescriptor;
using ShmTransport = eprosima::fastdds::rtps::SharedMemTransportDescriptor;

json difference(const json& value, const json& vendor) { return {{"value", value}, {"default", vendor}}; }

template <typename Descriptor>
const Descriptor* transport_of(const dds::DomainParticipantQos& qos) {
  for (const auto& each : qos.transport().user_transports) {
    if (const auto* found = dynamic_cast<const Descriptor*>(each.get()); found != nullptr) return found;
  }
  return nullptr;
}

// Which transports a participant has, including the vendor's built-in ones.
struct Carriers {
  explicit Carriers(const dds::DomainParticipantQos& qos)
      : udp(qos.transport().use_builtin_transports || transport_of<UdpTransport>(qos) != nullptr),
        tcp(transport_of<TcpTransport>(qos) != nullptr),
        shm(qos.transport().use_builtin_transports || transport_of<ShmTransport>(qos) != nullptr) {}

  [[nodiscard]] std::string names() const {
    std::string all;
    for (const auto& [has, name] : {std::pair{udp, "UDPv4"}, std::pair{tcp, "TCPv4"}, std::pair{shm, "SHM"}}) {
      if (has) all += (all.empty() ? "" : "+") + std::string(name);
    }
    return all;
  }

  bool udp;
  bool tcp;
  bool shm;
};

// 0: can't be read from /proc. The kernel silently reduces a larger request.
uint64_t kernel_limit(const char* file) {
  std::ifstream stream(file);
  uint64_t value = 0;
  stream >> value;
  return stream ? value : 0;
}

std::string addresses(const std::vector<TcpEnd>& ends) {
  std::string text;
  for (const TcpEnd& end : ends) text += (text.empty() ? "" : ", ") + (kLoopback + (":" + std::to_string(end.port)));
  return text;
}

void note_tcp(const TcpPlace& place, json& out) {
  out["participant_id"] = difference(place.participant(), "the next that is free");
  out["announcement_period_s"] = difference(kTcpLaterAnnouncementPeriodS, kLaterAnnouncementPeriodSDefault);
  out["tcp_logical_ports"] = difference(1, 2);
  out["tcp_listening_port"] = difference(place.own().port, "none");
  out["interfaces"] = difference(kLoopback, "all");
  if (!place.peers().empty()) out["initial_peers"] = difference(addresses(place.peers()), "none");
}

template <typename Socket>
void note_sockets(const Socket* transport, const std::string& kind, json& out) {
  if (transport == nullptr) return;
  const auto put = [&](const std::string& name, uint32_t bytes) {
    if (bytes != 0) out[name] = difference(bytes, "as the kernel sets it");
  };
  put(kind + "_send_buffer_bytes", transport->sendBufferSize);
  put(kind + "_receive_buffer_bytes", transport->receiveBufferSize);
}

// The settings of the participant's transports, read back from the vendor.
void note_transports(const dds::DomainParticipantQos& qos, json& out) {
  const auto& transport = qos.transport();
  if (const std::string names = Carriers(qos).names(); names != "UDPv4+SHM") {
    out["transports"] = difference(names, "UDPv4+SHM");
  }
  note_sockets(transport_of<UdpTransport>(qos), "udp", out);
  note_sockets(transport_of<TcpTransport>(qos), "tcp", out);
  if (transport.send_socket_buffer_size != 0) {
    out["send_socket_buffer_bytes"] = difference(transport.send_socket_buffer_size, "as the kernel sets it");
  }
  if (transport.listen_socket_buffer_size != 0) {
    out["listen_socket_buffer_bytes"] = difference(transport.listen_socket_buffer_size, "as the kernel sets it");
  }
  const auto* tcp = transport_of<TcpTransport>(qos);
  if (tcp != nullptr && tcp->enable_tcp_nodelay) out["tcp_nodelay"] = difference(true, false);
  const auto* shm = transport_of<ShmTransport>(qos);
  if (shm != nullptr && shm->segment_size() != kShmSegmentBytesDefault) {
    out["shm_segment_bytes"] = difference(shm->segment_size(), kShmSegmentBytesDefault);
  }
  // The smallest counts: the vendor fragments a message once, whatever carries it.
  uint32_t message_bytes = transport.use_builtin_transports ? kSocketMessageBytesMax : UINT32_MAX;
  for (const auto& each : transport.user_transports) message_bytes = std::min(message_bytes, each->max_message_size());
  if (message_bytes != kSocketMessageBytesMax) {
    out["max_message_bytes"] = difference(message_bytes, kSocketMessageBytesMax);
  }
}

const char* protocol_name(rtps::DiscoveryProtocol_t protocol) {
  switch (protocol) {
    case rtps::DiscoveryProtocol_t::SIMPLE:
      return "SIMPLE";
    case rtps::DiscoveryProtocol_t::CLIENT:
      return "CLIENT";
    case rtps::DiscoveryProtocol_t::SUPER_CLIENT:
      return "SUPER_CLIENT";
    default:
      return "other";
  }
}

// From the participant's own properties, whose files the library has checked: it does not create a participant that it
// can't secure.
std::string security_of(const dds::DomainParticipantQos& qos) {
  const std::string* governance = rtps::PropertyPolicyHelper::find_property(
      qos.properties(), "dds.sec.access.builtin.Access-Permissions.governance");
  return governance == nullptr ? "none" : dds_security::protection_in(governance->substr(std::strlen("file://")));
}

json context_settings(const Context& context) {
  const Settings& settings = context.settings();
  json out{{"initial_announcements", difference(kAnnouncements, kAnnouncementsDefault)},
           {"initial_announcement_period_ns", difference(kAnnouncementPeriodNs, kAnnouncementPeriodNsDefault)}};
  const auto protocol = context.qos().wire_protocol().builtin.discovery_config.discoveryProtocol;
  if (protocol != rtps::DiscoveryProtocol_t::SIMPLE) {
    out["discovery_protocol"] = difference(protocol_name(protocol), "SIMPLE");
  }
  if (settings.discovery_server) {
    out["discovery_server"] = difference(kLoopback + (":" + std::to_string(kDiscoveryServerPort)), "none");
  }
  if (settings.intra_process != IntraProcess::kFull) {
    out["intraprocess_delivery"] = difference(name_of(settings.intra_process), name_of(IntraProcess::kFull));
  }
  // A file without a default profile changes nothing and is not in force.
  if (!settings.profiles_file.empty() && LibraryUse::profiles_change_something()) {
    out[kProfilesVariable] = difference(settings.profiles_file, "");
  }
  if (const std::string kind = security_of(context.qos()); kind != "none") out["security"] = difference(kind, "none");
  note_transports(context.qos(), out);
  if (context.tcp_place() != nullptr) note_tcp(*context.tcp_place(), out);
  if (!settings.own_address.empty()) out["interfaces"] = difference(settings.own_address, "all");
  if (settings.loopback_only) {
    out["interfaces"] = difference(kLoopback, "all");
    out["initial_peers_range"] = difference(std::max(kInitialPeersDefault, settings.peers + 1), kInitialPeersDefault);
    if (!settings.discovery_server) out["initial_peers"] = difference(kLoopback, "multicast 239.255.0.1");
  }
  return out;
}

// In the vendor's order of preference. Within a process it delivers directly, whatever the transports, unless that is
// disabled.
json transports(const Context& context) {
  const Carriers carriers(context.qos());
  json between = json::array();
  if (carriers.shm) between.push_back("shared-memory");
  if (carriers.tcp) between.push_back("tcp");
  if (carriers.udp) between.push_back("udp");
  const bool direct = context.settings().intra_process != IntraProcess::kOff;
  return {{"within_process", direct ? json::array({"process"}) : between}, {"between_processes", between}};
}

std::string text_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

json describe_context(const Context& context) {
  const Settings& settings = context.settings();
  json out{
      {"settings", context_settings(context)},
      {"observed", json::object()},
      {"transport", transports(context)},
      {"paste", {{{"file", "fastdds_participant.xml"}, {"text", participant_profile(settings, context.tcp_place())}}}}};
  if (settings.security) {
    out["observed"]["participants_authorised"] = context.acquaintances().authorised();
    if (const size_t refused = context.acquaintances().unauthorised(); refused != 0)
      out["observed"]["participants_unauthorised"] = refused;
  }
  if (settings.intra_process_asked && settings.intra_process != IntraProcess::kFull) {
    out["paste"].push_back({{"file", "fastdds_library.xml"}, {"text", library_settings(settings.intra_process)}});
  }
  if (!settings.profiles_file.empty()) {
    out["paste"].push_back({{"file", settings.profiles_file}, {"text", text_of(settings.profiles_file)}});
  }
  if (settings.socket_buffer_bytes != 0) {
    for (const auto& [name, option] : {std::pair{"SO_RCVBUF", SO_RCVBUF}, std::pair{"SO_SNDBUF", SO_SNDBUF}}) {
      const auto bytes = context.sockets().closest_buffer(option, settings.socket_buffer_bytes);
      if (bytes) out["settings"][name] = difference(*bytes, nullptr);
    }
    out["observed"]["kernel_send_buffer_bytes_max"] = kernel_limit("/proc/sys/net/core/wmem_max");
    out["observed"]["kernel_receive_buffer_bytes_max"] = kernel_limit("/proc/sys/net/core/rmem_max");
  }
  return out;
}

json duration(const eprosima::fastrtps::Duration_t& value) {
  return value.is_infinite() ? json("infinite") : json(value.to_ns());
}

const char* data_sharing_name(const dds::DataSharingQosPolicy& policy) {
  if (policy.kind() == dds::DataSharingKind::OFF) return "off";
  return policy.kind() == dds::DataSharingKind::ON ? "on" : "auto";
}

template <typename Value>
void note(json& out, const char* key, const Value& value, const Value& vendor) {
  if (json(value) != json(vendor)) out[key] = difference(value, vendor);
}

template <typename Qos>
json endpoint_settings(const Qos& qos, const Qos& vendor) {
  json out = json::object();
  const auto reliability = [](const Qos& q) {
    return std::string(q.reliability().kind == dds::RELIABLE_RELIABILITY_QOS ? "reliable" : "best_effort");
  };
  const auto durability = [](const Qos& q) {
    return std::string(q.durability().kind == dds::VOLATILE_DURABILITY_QOS ? "volatile" : "transient_local");
  };
  const auto history = [](const Qos& q) {
    return q.history().kind == dds::KEEP_ALL_HISTORY_QOS
               ? "keep_all up to " + std::to_string(q.resource_limits().max_samples)
               : "keep_last " + std::to_string(q.history().depth);
  };
  note(out, "reliability", reliability(qos), reliability(vendor));
  note(out, "durability", durability(qos), durability(vendor));
  note(out, "history", history(qos), history(vendor));
  note(out, "blocking_ns_max", duration(qos.reliability().max_blocking_time),
       duration(vendor.reliability().max_blocking_time));
  note(out, "deadline_ns", duration(qos.deadline().period), duration(vendor.deadline().period));
  note(out, "lifespan_ns", duration(qos.lifespan().duration), duration(vendor.lifespan().duration));
  const auto manual = [](const Qos& q) { return q.liveliness().kind != dds::AUTOMATIC_LIVELINESS_QOS; };
  note(out, "liveliness_manual", manual(qos), manual(vendor));
  note(out, "liveliness_lease_ns", duration(qos.liveliness().lease_duration),
       duration(vendor.liveliness().lease_duration));
  note(out, "data_sharing", std::string(data_sharing_name(qos.data_sharing())),
       std::string(data_sharing_name(vendor.data_sharing())));
  const std::string* names = rtps::PropertyPolicyHelper::find_property(qos.properties(), "partitions");
  if (names != nullptr) out["partition"] = difference(*names, "");
  return out;
}

// As observed from outside (loopback counters), on the host's network and in a private one: with both transports, 2.9
// sends RELIABLE through shared memory and BEST_EFFORT over UDP, unless the two endpoints use data sharing.
json writer_transports(const Context& context, bool reliable, bool data_shared) {
  json result = transports(context);
  if (!Carriers(context.qos()).udp || reliable || data_shared) return result;
  result["between_processes"] = {"udp"};
  if (context.settings().intra_process == IntraProcess::kOff) result["within_process"] = {"udp"};
  return result;
}

json describe_writer(const Writer& writer) {
  const dds::DataWriterQos& qos = writer.vendor_writer().get_qos();
  const dds::DataWriterQos vendor;
  json settings = endpoint_settings(qos, vendor);
  const auto mode = [](const dds::DataWriterQos& q) {
    return std::string(q.publish_mode().kind == dds::SYNCHRONOUS_PUBLISH_MODE ? "sync" : "async");
  };
  note(settings, "publish_mode", mode(qos), mode(vendor));
  note(settings, "heartbeat_period_ns", duration(qos.reliable_writer_qos().times.heartbeatPeriod),
       duration(vendor.reliable_writer_qos().times.heartbeatPeriod));
  json paste = json::array();
  if (!settings.empty()) paste.push_back({{"file", "fastdds_data_writer.xml"}, {"text", writer_profile(qos)}});
  const bool reliable = qos.reliability().kind == dds::RELIABLE_RELIABILITY_QOS;
  return {{"settings", settings},
          {"observed", {{"data_sharing", writer.shares_data()}}},
          {"transport", writer_transports(writer.context(), reliable, writer.shares_data())},
          {"paste", paste}};
}

json describe_reader(const Reader& reader) {
  const dds::DataReaderQos& qos = reader.vendor_reader().get_qos();
  const json settings = endpoint_settings(qos, dds::DataReaderQos());
  json paste = json::array();
  if (!settings.empty()) paste.push_back({{"file", "fastdds_data_reader.xml"}, {"text", reader_profile(qos)}});
  return {{"settings", settings}, {"observed", json::object()}, {"paste", paste}};
}

// The library reports no version at run time; its file's name does (libfastrtps.so.2.9.1).
std::filesystem::path library_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&dds::DomainParticipantFactory::get_instance), &info) == 0) return {};
  std::error_code failed;
  const auto file = std::filesystem::canonical(info.dli_fname, failed);
  return failed ? std::filesystem::path() : file;
}

std::string library_version(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const std::string mark = ".so.";
  const size_t at = name.find(mark);
  const std::string found = at == std::string::npos ? "" : name.substr(at + mark.size());
  return std::count(found.begin(), found.end(), '.') == 2 ? found : FASTRTPS_VERSION_STR;
}

}  // namespace

std::string probe() {
  const std::filesystem::path file = library_file();
  const json abilities{{"dispatch", {"listener", "waitset", "poll"}},
                       {"reliability", {"best_effort", "reliable"}},
                       {"history", {"keep_last", "keep_all"}},
                       {"durability", {"volatile", "transient_local"}},
                       {"types", {"bytes", "fixed", "string", "Image", "Imu", "PointCloud2"}},
                       {"profiles", {"default", "matched"}},
                       {"domains", true},
                       {"waitset_contexts", true},
                       {"stamps", {{"listener", {"signalled"}}, {"waitset", {"woken"}}, {"poll", json::array()}}},
                       {"origin", "copied"},
                       {"events",
                        {{"writer", {"matched", "deadline_missed", "incompatible_qos"}},
                         {"reader", {"matched", "lost", "deadline_missed", "incompatible_qos"}}}}};
  return json{{"version", library_version(file)},
              {"library", file.string()},
              {"abilities", abilities},
              {"limits", {{"payload_bytes_max", nullptr}}}}
      .dump();
}

std::string describe(uint32_t kind, const void* object) {
  switch (kind) {
    case LAGOMETER_OBJECT_CONTEXT:
      return describe_context(*static_cast<const Context*>(object)).dump();
    case LAGOMETER_OBJECT_WRITER:
      return describe_writer(*static_cast<const Writer*>(object)).dump();
    case LAGOMETER_OBJECT_READER:
      return describe_reader(*static_cast<const Reader*>(object)).dump();
    default:
      return json{{"settings", json::object()}, {"paste", json::array()}}.dump();
  }
}

}  // namespace lagometer::fastdds
