// SPDX-License-Identifier: Apache-2.0
// One participant in one domain, and the nodes in it.
#pragma once

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/Topic.hpp>
#include <map>
#include <optional>
#include <string>

#include "acquaintances.hpp"
#include "library.hpp"
#include "opened_sockets.hpp"
#include "settings.hpp"
#include "tcp_place.hpp"
#include "type.hpp"

namespace lagometer::fastdds {

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  void enable();

  [[nodiscard]] dds::DomainParticipant& participant() const noexcept { return *participant_; }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// Its QoS, as the vendor reports it.
  [[nodiscard]] const dds::DomainParticipantQos& qos() const noexcept { return participant_->get_qos(); }
  /// Where it listens and which peers it connects to over TCP; null with another transport.
  [[nodiscard]] const TcpPlace* tcp_place() const noexcept { return tcp_place_ ? &*tcp_place_ : nullptr; }

  /// The peers that the participant has discovered.
  [[nodiscard]] const Acquaintances& acquaintances() const noexcept { return acquaintances_; }

  /// The sockets that the participant opened, of the kind that its transport uses.
  [[nodiscard]] const OpenedSockets& sockets() const noexcept { return sockets_; }

  /// Registers a type unless one with its name already exists; returns the name.
  std::string register_type(const dds::TypeSupport& type);
  /// The topic with this name: a participant has one object per topic, shared by its endpoints. Must be returned.
  dds::Topic& acquire_topic(const std::string& name, const std::string& type_name);
  void release_topic(const std::string& name) noexcept;

 private:
  struct SharedTopic {
    dds::Topic* topic;
    uint32_t users;
  };
  void create_participant();
  void delete_participant() noexcept;
  void start();
  void start_over_tcp();
  void take_turn();
  [[nodiscard]] bool meet_peers();
  void begin_anew();

  Settings settings_;
  LibraryUse library_;
  uint32_t domain_;
  std::string name_;
  std::string runtime_directory_;
  OpenedSockets sockets_;
  std::optional<TcpPlace> tcp_place_;
  Acquaintances acquaintances_;                    // outlives the participant, which reports to it
  dds::DomainParticipant* participant_ = nullptr;  // the factory's; returned in the destructor
  bool has_types_ = false;
  std::map<std::string, SharedTopic> topics_;
};

/// A publisher and a subscriber: DDS itself has no nodes.
class Node {
 public:
  Node(Context& context, std::string_view name);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Context& context() const noexcept { return context_; }
  [[nodiscard]] dds::Publisher& publisher() const noexcept { return *publisher_; }
  [[nodiscard]] dds::Subscriber& subscriber() const noexcept { return *subscriber_; }
  /// The QoS of writers and readers before requested settings are applied: as in the file of profiles, otherwise the
  /// vendor's.
  [[nodiscard]] dds::DataWriterQos initial_writer_qos() const;
  [[nodiscard]] dds::DataReaderQos initial_reader_qos() const;

 private:
  Context& context_;
  dds::Publisher* publisher_ = nullptr;  // both the participant's
  dds::Subscriber* subscriber_ = nullptr;
};

/// Logs a failed middleware call where no status can be returned, as in a destructor.
void log_failure(ReturnCode_t code, const char* call) noexcept;

}  // namespace lagometer::fastdds
