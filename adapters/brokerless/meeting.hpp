// SPDX-License-Identifier: Apache-2.0
// Where endpoints of a library without discovery find each other: subscribers listen and announce their addresses;
// publishers look for them and connect. On one host both use the trial's runtime directory
// (adapters/common/rendezvous.hpp), where publishers announce themselves, too, so that a later subscriber can knock at
// their doors (door.hpp). Between hosts they use multicast (adapters/common/directory.hpp).
#pragma once

#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "door.hpp"
#include "endpoint.hpp"
#include "rendezvous.hpp"

namespace lagometer::brokerless {

class Meeting {
 public:
  /// `transport`: ipc, tcp or inproc; none: tcp between hosts, otherwise ipc. `any_port`: the library's notation for a
  /// port that the kernel chooses. Errors: the transport reaches no other host, and there are some.
  Meeting(const Abilities& abilities, const lagometer_context_config& config,
          const std::optional<std::string>& transport, std::string_view any_port)
      : folder_(rendezvous::adapter_folder(view(config.runtime_directory), config.domain, abilities.adapter)),
        any_port_(any_port) {
    const rendezvous::Link link(config);
    transport_ = transport.value_or(link.address.empty() ? "ipc" : "tcp");
    if (link.address.empty()) return;
    if (transport_ != "tcp")
      throw Error(LAGOMETER_INVALID, std::string(abilities.adapter) + ": transport " + transport_ +
                                         " reaches no other host; use tcp, or leave it out");
    address_ = link.address;
    directory_ = std::make_shared<rendezvous::Directory>(link.address, link.place(abilities.adapter, config.domain),
                                                         rendezvous::Unasked::told);
  }

  [[nodiscard]] const std::string& transport() const noexcept { return transport_; }
  /// Null if there is no other host.
  [[nodiscard]] const std::shared_ptr<rendezvous::Directory>& directory() const noexcept { return directory_; }

  /// A unique address, across all domains, for a new subscriber to listen at. With tcp, the library reports the port.
  [[nodiscard]] std::string new_address() const {
    if (transport_ == "tcp") return "tcp://" + address_ + ":" + any_port_;
    return transport_ + "://" + new_socket_path("s");
  }

  /// For a Unix-domain socket of this context. Errors: the runtime directory's name is too long for a socket.
  [[nodiscard]] std::string new_socket_path(std::string_view prefix) const {
    std::string path = (folder_ / rendezvous::unique_name(prefix)).string();
    if (path.size() < sizeof(sockaddr_un::sun_path)) return path;
    throw Error(LAGOMETER_INVALID, "'" + path + "' is longer than a socket's name may be (" +
                                       std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                                       " bytes); use a shorter runtime directory");
  }

  /// What a subscriber at this address announces.
  [[nodiscard]] nlohmann::json facts(const Endpoint& endpoint, const std::string& address) const {
    nlohmann::json result = endpoint.facts();
    result["address"] = address;
    result["transport"] = transport_;
    result["process"] = process();
    return result;
  }

  /// Why a publisher here can't reach a subscriber with these facts; empty if it can.
  [[nodiscard]] std::string unreachable(const nlohmann::json& subscriber) const {
    const auto other = subscriber.at("transport").get<std::string>();
    if (other != transport_) return "the publisher's transport is " + transport_ + ", the subscriber's " + other;
    if (transport_ == "inproc" && subscriber.at("process") != process())
      return "transport inproc reaches no other process; use placement single-process, or ipc";
    return {};
  }

  /// Publishers find a subscriber for as long as the result lives. They look for it by themselves until the start;
  /// later ones also knock().
  [[nodiscard]] std::shared_ptr<void> announce(const std::string& topic, const nlohmann::json& facts) const {
    if (!directory_) return std::make_shared<rendezvous::Announcement>(topic_folder(topic), facts);
    const uint32_t entry = directory_->add(topic, facts);
    return {directory_.get(), [directory = directory_, entry](void*) { directory->remove(entry); }};
  }

  /// The subscribers of a topic whose names `known` does not accept.
  template <typename Known>
  [[nodiscard]] std::vector<rendezvous::Found> subscribers(const std::string& topic, Known&& known) const {
    if (!directory_) return rendezvous::scan(topic_folder(topic), known);
    std::vector<rendezvous::Found> result = directory_->present(topic);
    std::erase_if(result, [&known](const rendezvous::Found& found) { return known(found.name); });
    return result;
  }

  /// Whether a subscriber that was found is still there. Between hosts a killed one never says that it goes.
  [[nodiscard]] bool present(const std::string& topic, const std::string& name, const Descriptor& announcement) const {
    return directory_ ? directory_->has(topic, name) : rendezvous::locked_by_other(announcement.get());
  }

  /// Between hosts, asks the subscribers of a topic to answer. They are among the subscribers() later.
  void ask(const std::string& topic) const {
    if (directory_) directory_->ask(topic);
  }

  /// Has the publishers of a topic look for subscribers. Call it after a subscriber has announced itself or has gone.
  /// Between hosts the announcement and its end are enough.
  void knock(const std::string& topic) const {
    if (directory_) return;
    const auto all = [](const std::string&) { return false; };
    for (const auto& publisher : rendezvous::scan(publishers_folder(topic), all))
      Door::knock(publisher.facts.at("door").get<std::string>());
  }

  /// Tells later subscribers of this host where to knock, for as long as the result lives.
  [[nodiscard]] std::shared_ptr<void> publish(const std::string& topic, const Door& door) const {
    if (directory_) return {};
    return std::make_shared<rendezvous::Announcement>(publishers_folder(topic), nlohmann::json{{"door", door.path()}});
  }

  /// What carries messages, in the terms of docs/ADAPTERS.md.
  [[nodiscard]] nlohmann::json claim() const {
    if (transport_ == "inproc") return {{"within_process", {"process"}}};
    const nlohmann::json one = {transport_ == "ipc" ? "unix-socket" : "tcp"};
    return {{"within_process", one}, {"between_processes", one}};
  }

 private:
  /// A name for this process that is unique across all namespaces.
  static const std::string& process() {
    static const std::string name = rendezvous::unique_name("p");
    return name;
  }

  [[nodiscard]] std::filesystem::path topic_folder(std::string_view topic) const {
    return rendezvous::topic_folder(folder_, topic);
  }
  [[nodiscard]] std::filesystem::path publishers_folder(std::string_view topic) const {
    return topic_folder(topic) / "publishers";
  }

  std::filesystem::path folder_;
  std::string transport_;
  std::string any_port_;
  std::string address_ = internet::loopback;  // of this host
  std::shared_ptr<rendezvous::Directory> directory_;
};

/// A publisher that looks for subscribers whenever one has come or gone, for as long as this lives.
class Publication {
 public:
  /// `look`: see Door::answer().
  Publication(Door& door, const Meeting& meeting, const std::string& topic, std::function<void()> look) : door_(door) {
    door_.answer(this, std::move(look));
    try {
      announcement_ = meeting.publish(topic, door_);
    } catch (...) {
      door_.leave(this);
      throw;
    }
  }
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  ~Publication() {
    announcement_.reset();
    door_.leave(this);
  }

 private:
  Door& door_;
  std::shared_ptr<void> announcement_;
};

}  // namespace lagometer::brokerless
