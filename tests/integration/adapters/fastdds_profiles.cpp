// SPDX-License-Identifier: Apache-2.0
// Reads XML profiles with Fast DDS's own parser, as an application would that has them pasted into its file, and says
// on standard output what came of them. Arguments: files. An error of the parser ends it with 1.
#include <fastdds/rtps/transport/TCPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <cstdio>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <memory>
#include <sstream>
#include <string>

namespace {

using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::xmlparser::XMLP_ret;
using eprosima::fastrtps::xmlparser::XMLProfileManager;

std::string text_of(const eprosima::fastdds::rtps::LocatorList& locators) {
  std::string text;
  for (const auto& each : locators) {
    text += (text.empty() ? "\"" : ",\"") + IPLocator::toIPv4string(each) + ":" +
            std::to_string(IPLocator::getPhysicalPort(each)) + "/" + std::to_string(IPLocator::getLogicalPort(each)) +
            "\"";
  }
  return text;
}

void say_participant() {
  eprosima::fastrtps::ParticipantAttributes attributes;
  if (XMLProfileManager::fillParticipantAttributes("lagometer", attributes, false) != XMLP_ret::XML_OK) return;
  const auto& rtps = attributes.rtps;
  const auto& discovery = rtps.builtin.discovery_config;
  std::printf("\"participant\":{\"number\":%d,\"builtin_transports\":%s,\"client\":%s,\"announcements\":%u",
              rtps.participantID, rtps.useBuiltinTransports ? "true" : "false",
              discovery.discoveryProtocol == eprosima::fastrtps::rtps::DiscoveryProtocol_t::CLIENT ? "true" : "false",
              discovery.initial_announcements.count);
  for (const auto& server : discovery.m_DiscoveryServers) {
    std::ostringstream where;
    where << server.guidPrefix << " " << *server.metatrafficUnicastLocatorList.begin();
    std::printf(",\"server\":\"%s\"", where.str().c_str());
  }
  std::printf(",\"later_announcements_s\":%d", discovery.leaseDuration_announcementperiod.seconds);
  std::printf(",\"peers\":[%s],\"listens\":[%s],\"listens_for_discovery\":[%s]",
              text_of(rtps.builtin.initialPeersList).c_str(), text_of(rtps.defaultUnicastLocatorList).c_str(),
              text_of(rtps.builtin.metatrafficUnicastLocatorList).c_str());
  for (const auto& transport : rtps.userTransports) {
    const auto tcp = std::dynamic_pointer_cast<eprosima::fastdds::rtps::TCPv4TransportDescriptor>(transport);
    if (tcp == nullptr) continue;
    std::printf(",\"tcp\":{\"port\":%u,\"nodelay\":%s,\"interface\":\"%s\",\"send_buffer\":%u}",
                tcp->listening_ports.at(0), tcp->enable_tcp_nodelay ? "true" : "false",
                tcp->interfaceWhiteList.at(0).c_str(), tcp->sendBufferSize);
  }
  std::printf("},");
}

template <typename Attributes>
void say_endpoint(const char* name, const Attributes& attributes) {
  std::printf("\"%s\":{\"deadline_ns\":%lld,\"data_sharing\":%d},", name,
              static_cast<long long>(attributes.qos.m_deadline.period.to_ns()),
              static_cast<int>(attributes.qos.data_sharing.kind()));
}

}  // namespace

int main(int count, char** files) {
  auto& factory = *eprosima::fastdds::dds::DomainParticipantFactory::get_instance();
  for (int file = 1; file < count; ++file) {
    if (!(factory.load_XML_profiles_file(files[file]) == ReturnCode_t::RETCODE_OK)) return 1;
  }
  std::printf("{");
  say_participant();
  eprosima::fastrtps::PublisherAttributes writer;
  if (XMLProfileManager::fillPublisherAttributes("lagometer_data_writer", writer, false) == XMLP_ret::XML_OK) {
    say_endpoint("writer", writer);
    std::printf("\"synchronous\":%s,",
                writer.qos.m_publishMode.kind == eprosima::fastrtps::SYNCHRONOUS_PUBLISH_MODE ? "true" : "false");
  }
  eprosima::fastrtps::SubscriberAttributes reader;
  if (XMLProfileManager::fillSubscriberAttributes("lagometer_data_reader", reader, false) == XMLP_ret::XML_OK) {
    say_endpoint("reader", reader);
  }
  std::printf("\"intra_process\":%d}\n", static_cast<int>(XMLProfileManager::library_settings().intraprocess_delivery));
  return 0;
}
