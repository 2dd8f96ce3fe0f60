// SPDX-License-Identifier: Apache-2.0
// Where endpoints of a library without discovery find each other: subscribers listen and announce their addresses in
// the trial's runtime directory; publishers look for them there and connect (adapters/common/rendezvous.hpp).
// Publishers announce themselves, too, so that a later subscriber can knock at their doors (door.hpp).
#pragma once

#include <sys/un.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "door.hpp"
#include "endpoint.hpp"
#include "rendezvous.hpp"

namespace lagometer::brokerless {

class Meeting {
 public:
  /// `transport`: ipc, tcp or inproc. `any_port`: the library's notation for a port that the kernel chooses.
  Meeting(const Abilities& abilities, const lagometer_context_config& config, std::string transport,
          std::string_view any_port)
      : folder_(rendezvous::adapter_folder(view(config.runtime_directory), config.domain, abilities.adapter)),
        transport_(std::move(transport)),
        any_port_(any_port) {}

  [[nodiscard]] const std::string& transport() const noexcept { return transport_; }
  [[nodiscard]] std::filesystem::path topic_folder(std::string_view topic) const {
    return rendezvous::topic_folder(folder_, topic);
  }
  [[nodiscard]] std::filesystem::path publishers_folder(std::string_view topic) const {
    return topic_folder(topic) / "publishers";
  }

  /// A unique address, across all domains, for a new subscriber to listen at. With tcp, the library reports the port.
  [[nodiscard]] std::string new_address() const {
    if (transport_ == "tcp") return "tcp://127.0.0.1:" + any_port_;
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

  /// Has the publishers of a topic look for subscribers. Call it after the new subscriber has announced itself.
  void knock(std::string_view topic) const {
    const auto all = [](const std::string&) { return false; };
    for (const auto& publisher : rendezvous::scan(publishers_folder(topic), all))
      Door::knock(publisher.facts.at("door").get<std::string>());
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

  std::filesystem::path folder_;
  std::string transport_;
  std::string any_port_;
};

/// Tells later subscribers where to knock, for as long as it lives.
class Publication {
 public:
  /// `look`: see Door::answer().
  Publication(Door& door, const Meeting& meeting, const std::string& topic, std::function<void()> look) : door_(door) {
    door_.answer(this, std::move(look));
    try {
      announcement_.emplace(meeting.publishers_folder(topic), nlohmann::json{{"door", door_.path()}});
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
  std::optional<rendezvous::Announcement> announcement_;
};

}  // namespace lagometer::brokerless
