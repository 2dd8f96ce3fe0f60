// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <fastdds/rtps/attributes/ServerAttributes.h>
#include <fastdds/rtps/transport/TCPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <memory>

#include "unhurried.hpp"

namespace lagometer::fastdds {
namespace {

namespace transport_types = eprosima::fastdds::rtps;

constexpr int kTcpAttempts = 4;  // together less than the shortest time that a worker has to be ready
constexpr auto kTcpMeeting = std::chrono::milliseconds(3000);  // with twelve processes on two cores none took 1.2 s
constexpr auto kTcpLook = std::chrono::milliseconds(20);

rtps::Locator_t loopback_locator(int32_t kind) {
  rtps::Locator_t locator;
  locator.kind = kind;
  rtps::IPLocator::setIPv4(locator, kLoopback);
  return locator;
}

void add_udp(const Settings& settings, dds::DomainParticipantQos& qos) {
  auto udp = std::make_shared<transport_types::UDPv4TransportDescriptor>();
  udp->sendBufferSize = settings.socket_buffer_bytes;  // 0: the kernel's default, like the vendor
  udp->receiveBufferSize = settings.socket_buffer_bytes;
  if (settings.max_message_bytes != 0) udp->maxMessageSize = settings.max_message_bytes;
  if (!settings.own_address.empty()) udp->interfaceWhiteList.emplace_back(settings.own_address);
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

rtps::Locator_t tcp_locator(const TcpEnd& end) {
  rtps::Locator_t locator = loopback_locator(LOCATOR_KIND_TCPv4);
  rtps::IPLocator::setPhysicalPort(locator, end.port);
  rtps::IPLocator::setLogicalPort(locator, end.logical_port);
  return locator;
}

// One logical port for everything that a participant receives, where the vendor has two: each is requested and granted
// separately, and 2.9 may lose that. So a pair that has discovered each other needs no other port (see
// Context::meet_peers).
void add_tcp(const Settings& settings, const TcpPlace& place, dds::DomainParticipantQos& qos) {
  auto tcp = std::make_shared<transport_types::TCPv4TransportDescriptor>();
  tcp->sendBufferSize = settings.socket_buffer_bytes;  // 0: like the vendor
  tcp->receiveBufferSize = settings.socket_buffer_bytes;
  if (settings.max_message_bytes != 0) tcp->maxMessageSize = settings.max_message_bytes;
  tcp->enable_tcp_nodelay = settings.tcp_nodelay;
  tcp->interfaceWhiteList.emplace_back(kLoopback);
  tcp->add_listener_port(place.own().port);
  auto& wire = qos.wire_protocol();
  wire.participant_id = static_cast<int32_t>(place.participant());
  wire.builtin.discovery_config.leaseDuration_announcementperiod = {kTcpLaterAnnouncementPeriodS, 0};
  wire.builtin.metatrafficUnicastLocatorList.push_back(tcp_locator(place.own()));
  wire.default_unicast_locator_list.push_back(tcp_locator(place.own()));
  for (const TcpEnd& end : place.peers()) wire.builtin.initialPeersList.push_back(tcp_locator(end));
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

// The built-in plugins of DDS Security (Fast DDS documentation, "Security").
void add_security(const dds_security::Files& files, dds::DomainParticipantQos& qos) {
  auto& properties = qos.properties().properties();
  const auto set = [&](const std::string& name, const std::string& value) {
    properties.emplace_back("dds.sec." + name, value);
  };
  const auto set_file = [&](const char* name, const std::string& path) { set(name, "file://" + path); };
  set("auth.plugin", "builtin.PKI-DH");
  set_file("auth.builtin.PKI-DH.identity_ca", files.identity_ca);
  set_file("auth.builtin.PKI-DH.identity_certificate", files.certificate);
  set_file("auth.builtin.PKI-DH.private_key", files.private_key);
  set("access.plugin", "builtin.Access-Permissions");
  set_file("access.builtin.Access-Permissions.permissions_ca", files.permissions_ca);
  set_file("access.builtin.Access-Permissions.governance", files.governance);
  set_file("access.builtin.Access-Permissions.permissions", files.permissions);
  set("crypto.plugin", "builtin.AES-GCM-GMAC");
}

// Starts from the file of profiles that the environment names, otherwise from the vendor's built-in values.
dds::DomainParticipantQos initial_qos(const Settings& settings) {
  if (settings.profiles_file.empty()) return {};
  dds::DomainParticipantQos qos = dds::DomainParticipantFactory::get_instance()->get_default_participant_qos();
  const bool has_transports = !qos.transport().use_builtin_transports || !qos.transport().user_transports.empty();
  refuse(has_transports && !settings.builtin_transports(),
         std::string("the file that ") + kProfilesVariable +
             " names has transports of its own, and so have the options, the profile matched, or a network that is not "
             "private: leave one of them out");
  return qos;
}

dds::DomainParticipantQos participant_qos(const Settings& settings, const TcpPlace* place, std::string_view name) {
  dds::DomainParticipantQos qos = initial_qos(settings);
  qos.name(std::string(name).c_str());
  auto& announcements = qos.wire_protocol().builtin.discovery_config.initial_announcements;
  announcements.count = kAnnouncements;
  announcements.period = {0, kAnnouncementPeriodNs};
  if (settings.discovery_server) join_discovery_server(qos);
  if (settings.security) add_security(*settings.security, qos);
  if (settings.builtin_transports()) return qos;
  qos.transport().use_builtin_transports = false;
  if (place != nullptr) add_tcp(settings, *place, qos);
  if (settings.uses_udp()) add_udp(settings, qos);
  if (settings.uses_shm()) add_shm(settings, qos);
  return qos;
}

// Participants are created disabled. Enabling them enables what they contain, except writers and readers (see Node).
void create_disabled(dds::DomainParticipantFactory& factory) {
  dds::DomainParticipantFactoryQos qos;
  qos.entity_factory().autoenable_created_entities = false;
  if (!(factory.set_qos(qos) == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED, "fastdds: the participant factory refused its settings");
  }
}

// The library always reads both; the second one is a file that may set the first.
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
    : settings_(parse_settings(config)),
      library_(settings_),
      domain_(config.domain),
      name_(view(config.name)),
      runtime_directory_(view(config.runtime_directory)),
      sockets_(settings_.uses_tcp() ? SOCK_STREAM : SOCK_DGRAM) {
  settings_.intra_process = library_.intra_process();
  refuse_discovery_from_outside();
  if (settings_.uses_tcp()) tcp_place_.emplace(runtime_directory_, domain_);
  create_disabled(*dds::DomainParticipantFactory::get_instance());
  create_participant();
}

Context::~Context() {
  if (participant_ == nullptr) return;
  log_failure(participant_->delete_contained_entities(), "delete_contained_entities");
  try {
    if (tcp_place_) tcp_place_->await_turn_to_leave();
  } catch (const std::exception& error) {
    lagometer::log(LAGOMETER_LOG_WARNING, error.what());
  }
  delete_participant();
}

void Context::create_participant() {
  participant_ = dds::DomainParticipantFactory::get_instance()->create_participant(
      domain_, participant_qos(settings_, tcp_place(), name_), &acquaintances_, dds::StatusMask::none());
  if (participant_ != nullptr) return;
  throw Error(LAGOMETER_FAILED, "fastdds: no participant could be made in domain " + std::to_string(domain_) +
                                    ": see the lines of Fast DDS above");
}

void Context::delete_participant() noexcept {
  log_failure(dds::DomainParticipantFactory::get_instance()->delete_participant(participant_), "delete_participant");
  participant_ = nullptr;
}

void Context::enable() {
  if (tcp_place_) {
    start_over_tcp();
  } else {
    start();
  }
}

void Context::start() {
  if (participant_->enable() == ReturnCode_t::RETCODE_OK) return;
  throw Error(LAGOMETER_FAILED,
              "fastdds: the participant could not start: see the lines of Fast DDS above; a domain holds some 120 "
              "participants per host, numbered 0 to 232");
}

// Fast DDS 2.9 loses a connection for good if the peer answers before the connecting thread has noted which logical
// port it wants: the answer is then dropped. So nothing in this process may preempt that thread. As that makes it rare,
// not impossible, this checks that the peers are matched. Only a new participant connects again.
void Context::start_over_tcp() {
  const bool replaceable = !has_types_ && !participant_->has_active_entities();
  for (int attempt = 1;; ++attempt) {
    take_turn();
    if (meet_peers()) return;
    if (attempt == kTcpAttempts || !replaceable) break;
    begin_anew();
  }
  throw Error(
      LAGOMETER_FAILED,
      "fastdds: a participant did not meet those that came before it over TCP, as happens with Fast DDS 2.9 (see "
      "Lost connections over TCP in the adapter's README): run it again");
}

void Context::take_turn() {
  TcpPlace::Turn turn(*tcp_place_);
  if (!(participant_->set_qos(participant_qos(settings_, tcp_place(), name_)) == ReturnCode_t::RETCODE_OK)) {
    throw Error(LAGOMETER_FAILED, "fastdds: its TCP transport was refused: see the lines of Fast DDS above");
  }
  {
    const Unhurried connecting;
    start();
  }
  turn.join(participant_of(participant_->guid()));
}

// A participant that discovered a peer was discovered by it: only this tells the peer where to send its own
// announcement. So both directions are open then.
bool Context::meet_peers() {
  const auto until = std::chrono::steady_clock::now() + kTcpMeeting;
  while (!acquaintances_.missing(tcp_place_->peers_to_meet()).empty()) {
    if (std::chrono::steady_clock::now() > until) return false;
    acquaintances_.await_change(kTcpLook);
  }
  return true;
}

void Context::begin_anew() {
  lagometer::log(LAGOMETER_LOG_WARNING,
                 "fastdds: a connection over TCP was lost during set-up; the participant is recreated");
  tcp_place_.emplace(runtime_directory_, domain_);
  delete_participant();
  acquaintances_.forget();
  create_participant();
}

std::string Context::register_type(const dds::TypeSupport& type) {
  std::string name = type.get_type_name();
  has_types_ = true;
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

dds::DataWriterQos Node::initial_writer_qos() const {
  if (context_.settings().profiles_file.empty()) return {};
  return publisher_->get_default_datawriter_qos();
}

dds::DataReaderQos Node::initial_reader_qos() const {
  if (context_.settings().profiles_file.empty()) return {};
  return subscriber_->get_default_datareader_qos();
}

Node::~Node() {
  log_failure(context_.participant().delete_publisher(publisher_), "delete_publisher");
  log_failure(context_.participant().delete_subscriber(subscriber_), "delete_subscriber");
}

}  // namespace lagometer::fastdds
