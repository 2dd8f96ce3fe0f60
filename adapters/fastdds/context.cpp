// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <fastdds/rtps/attributes/ServerAttributes.h>
#include <fastdds/rtps/transport/TCPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <algorithm>
#include <cstdlib>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <memory>

namespace lagometer::fastdds {
namespace {

namespace transport_types = eprosima::fastdds::rtps;

rtps::Locator_t loopback_locator(int32_t kind) {
  rtps::Locator_t locator;
  locator.kind = kind;
  rtps::IPLocator::setIPv4(locator, kLoopback);
  return locator;
}

void add_udp(const Settings& settings, dds::DomainParticipantQos& qos) {
  auto udp = std::make_shared<transport_types::UDPv4TransportDescriptor>();
  udp->sendBufferSize = settings.socket_buffer_bytes;  // 0: as the kernel has it, as the vendor does
  udp->receiveBufferSize = settings.socket_buffer_bytes;
  if (settings.max_message_bytes != 0) udp->maxMessageSize = settings.max_message_bytes;
  if (settings.loopback_only) {
    udp->interfaceWhiteList.emplace_back(kLoopback);
    udp->maxInitialPeersRange = std::max(kInitialPeersDefault, settings.peers + 1);
    if (!settings.discovery_server) {
      qos.wire_protocol().builtin.initialPeersList.push_back(loopback_locator(LOCATOR_KIND_UDPv4));
    }
  }
  qos.transport().user_transports.push_back(udp);
}

void add_shm(const Settings& settings, dds::DomainParticipantQos& qos) {
  auto shm = std::make_shared<transport_types::SharedMemTransportDescriptor>();
  shm->segment_size(settings.shm_segment_bytes == 0 ? kShmSegmentBytesDefault : settings.shm_segment_bytes);
  shm->max_message_size(settings.max_message_bytes == 0 ? kSocketMessageBytesMax : settings.max_message_bytes);
  qos.transport().user_transports.push_back(shm);
}

void add_tcp(const Settings& settings, const TcpPlace& place, dds::DomainParticipantQos& qos) {
  auto tcp = std::make_shared<transport_types::TCPv4TransportDescriptor>();
  tcp->sendBufferSize = settings.socket_buffer_bytes;  // 0: as the vendor does
  tcp->receiveBufferSize = settings.socket_buffer_bytes;
  if (settings.max_message_bytes != 0) tcp->maxMessageSize = settings.max_message_bytes;
  tcp->enable_tcp_nodelay = settings.tcp_nodelay;
  tcp->interfaceWhiteList.emplace_back(kLoopback);
  tcp->add_listener_port(place.own().port);
  qos.wire_protocol().participant_id = static_cast<int32_t>(place.participant());
  for (const TcpEnd& end : place.peers()) {
    rtps::Locator_t peer = loopback_locator(LOCATOR_KIND_TCPv4);
    rtps::IPLocator::setPhysicalPort(peer, end.port);
    rtps::IPLocator::setLogicalPort(peer, end.logical_port);
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
  }
  qos.transport().user_transports.push_back(tcp);
}

void join_discovery_server(dds::DomainParticipantQos& qos) {
  auto& discovery = qos.wire_protocol().builtin.discovery_config;
  discovery.discoveryProtocol = rtps::DiscoveryProtocol_t::CLIENT;
  transport_types::RemoteServerAttributes server;
  server.ReadguidPrefix(transport_types::DEFAULT_ROS2_SERVER_GUIDPREFIX);
  rtps::Locator_t locator = loopback_locator(LOCATOR_KIND_UDPv4);
  locator.port = kDiscoveryServerPort;
  server.metatrafficUnicastLocatorList.push_back(locator);
  discovery.m_DiscoveryServers.push_back(server);
}

// Starts from the vendor's built-in values, so that an XML profile lying about in the environment changes nothing.
dds::DomainParticipantQos participant_qos(const Settings& settings, const TcpPlace* place, std::string_view name) {
  dds::DomainParticipantQos qos;
  qos.name(std::string(name).c_str());
  auto& announcements = qos.wire_protocol().builtin.discovery_config.initial_announcements;
  announcements.count = kAnnouncements;
  announcements.period = {0, kAnnouncementPeriodNs};
  if (settings.discovery_server) join_discovery_server(qos);
  if (settings.builtin_transports()) return qos;
  qos.transport().use_builtin_transports = false;
  if (place != nullptr) add_tcp(settings, *place, qos);
  if (settings.uses_udp()) add_udp(settings, qos);
  if (settings.uses_shm()) add_shm(settings, qos);
  return qos;
}

// Participants are created asleep; what they hold wakes with them, writers and readers apart (see Node).
void create_disabled(dds::DomainParticipantFactory& factory) {
  dds::DomainParticipantFactoryQos qos;
  qos.entity_factory().autoenable_created_entities = false;
  if (!(factory.set_qos(qos) == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED, "fastdds: the participant factory refused its settings");
  }
}

// The library looks at both of its own accord, the second one being a file that may set the first.
void refuse_discovery_from_outside() {
  for (const char* name : {"ROS_DISCOVERY_SERVER", "FASTDDS_ENVIRONMENT_FILE"}) {
    const char* value = std::getenv(name);
    refuse(value != nullptr && *value != '\0',
           std::string("the environment variable ") + name +
               " may make participants clients of a discovery server that the study does not name: unset it; the "
               "option discovery: server asks for one");
  }
}

}  // namespace

void log_failure(ReturnCode_t code, const char* call) noexcept {
  if (code == ReturnCode_t::RETCODE_OK) return;
  lagometer::log(LAGOMETER_LOG_WARNING,
                 std::string("fastdds: ") + call + " failed with return code " + std::to_string(code()));
}

Context::Context(const lagometer_context_config& config)
    : settings_(parse_settings(config)), library_(settings_.intra_process) {
  refuse_discovery_from_outside();
  if (settings_.uses_tcp()) tcp_place_.emplace(view(config.runtime_directory), config.domain);
  auto& factory = *dds::DomainParticipantFactory::get_instance();
  create_disabled(factory);
  participant_ = factory.create_participant(config.domain, participant_qos(settings_, tcp_place(), view(config.name)),
                                            nullptr, dds::StatusMask::none());
  if (participant_ == nullptr) {
    throw Error(LAGOMETER_FAILED, "fastdds: no participant could be made in domain " + std::to_string(config.domain) +
                                      ": see the lines of Fast DDS above");
  }
}

Context::~Context() {
  log_failure(participant_->delete_contained_entities(), "delete_contained_entities");
  log_failure(dds::DomainParticipantFactory::get_instance()->delete_participant(participant_), "delete_participant");
}

void Context::enable() {
  if (!(participant_->enable() == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED,
                "fastdds: the participant could not start: see the lines of Fast DDS above; a domain holds some 120 "
                "participants per host, numbered 0 to 232");
  }
  if (tcp_place_) tcp_place_->require_listening();
}

std::string Context::register_type(const dds::TypeSupport& type) {
  std::string name = type.get_type_name();
  if (participant_->find_type(name).empty() && !(type.register_type(participant_) == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED, "fastdds: the type " + name + " could not be registered");
  }
  return name;
}

dds::Topic& Context::acquire_topic(const std::string& name, const std::string& type_name) {
  const auto found = topics_.find(name);
  if (found != topics_.end()) {
    if (found->second.topic->get_type_name() != type_name) {
      throw Error(LAGOMETER_INVALID, "fastdds: topic " + name + " has the type " +
                                         found->second.topic->get_type_name() + " and can't have " + type_name +
                                         " in the same participant");
    }
    ++found->second.users;
    return *found->second.topic;
  }
  dds::Topic* topic = participant_->create_topic(name, type_name, dds::TopicQos());
  if (topic == nullptr) throw Error(LAGOMETER_FAILED, "fastdds: topic " + name + " could not be made");
  topics_[name] = {topic, 1};
  return *topic;
}

void Context::release_topic(const std::string& name) noexcept {
  const auto found = topics_.find(name);
  if (found == topics_.end() || --found->second.users > 0) return;
  log_failure(participant_->delete_topic(found->second.topic), "delete_topic");
  topics_.erase(found);
}

Node::Node(Context& context, std::string_view) : context_(context) {
  dds::PublisherQos publisher_qos;
  publisher_qos.entity_factory().autoenable_created_entities = false;
  dds::SubscriberQos subscriber_qos;
  subscriber_qos.entity_factory().autoenable_created_entities = false;
  publisher_ = context.participant().create_publisher(publisher_qos, nullptr, dds::StatusMask::none());
  subscriber_ = context.participant().create_subscriber(subscriber_qos, nullptr, dds::StatusMask::none());
  if (publisher_ == nullptr || subscriber_ == nullptr) {
    throw Error(LAGOMETER_FAILED, "fastdds: a publisher or a subscriber could not be made");
  }
}

Node::~Node() {
  log_failure(context_.participant().delete_publisher(publisher_), "delete_publisher");
  log_failure(context_.participant().delete_subscriber(subscriber_), "delete_subscriber");
}

}  // namespace lagometer::fastdds
