// SPDX-License-Identifier: Apache-2.0
// How publishers and subscribers on several hosts find each other: a publisher that looks for subscribers asks on the
// link, by multicast, and the subscribers of its topic answer. Nothing is sent unless somebody looks, comes or goes, so
// nothing is sent while a trial measures.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "internet.hpp"
#include "rendezvous.hpp"

namespace lagometer::rendezvous {

/// Whether the subscribers say by themselves that they come and go. Otherwise publishers learn it only if they ask.
enum class Unasked : uint8_t { silent, told };

class Directory {
 public:
  /// link: this host's address; place: what all messages must have in common (trial, adapter, domain).
  Directory(const std::string& link, nlohmann::json place, Unasked unasked)
      : place_(std::move(place)),
        unasked_(unasked),
        everyones_(hearing_everyone(internet::end_at(link, 0))),
        own_(asking(internet::end_at(link, 0))) {}

  /// If one is readable, call serve().
  [[nodiscard]] std::array<int, 2> descriptors() const noexcept { return {everyones_.get(), own_.get()}; }

  /// Answers for a subscriber from now on, until `remove` is called with the returned number. [thread: any]
  uint32_t add(const std::string& topic, const nlohmann::json& facts) {
    const std::scoped_lock lock(mutex_);
    entries_.emplace(++last_entry_, Entry{topic, facts});
    if (unasked_ == Unasked::told) tell({{"topic", topic}, {"facts", facts}});
    return last_entry_;
  }

  /// [thread: any]
  void remove(uint32_t entry) noexcept {
    guarded([this, entry] {
      const std::scoped_lock lock(mutex_);
      const auto node = entries_.extract(entry);
      if (unasked_ == Unasked::told && !node.empty())
        tell({{"topic", node.mapped().topic}, {"gone", node.mapped().facts.at("address")}});
      return LAGOMETER_OK;
    });
  }

  /// Asks all hosts for a topic's subscribers. Those that answer are among the present later. [thread: any]
  void ask(const std::string& topic) {
    nlohmann::json question = {{"topic", topic}};
    send_message(question, internet::end_at(group, port));
  }

  /// Reads what has arrived and answers questions. Returns whether a subscriber has come or gone. [thread: any]
  bool serve() {
    const std::scoped_lock lock(mutex_);
    bool changed = false;
    for (const int socket : descriptors()) {
      while (const auto message = next_message(socket)) changed = heed(message->first, message->second) || changed;
    }
    return changed;
  }

  /// The known subscribers of a topic; a name is an address. [thread: any]
  std::vector<Found> present(const std::string& topic) {
    const std::scoped_lock lock(mutex_);
    std::vector<Found> result;
    for (const auto& [address, facts] : heard_[topic]) result.push_back({address, facts, {}});
    return result;
  }

  /// [thread: any]
  [[nodiscard]] bool has(const std::string& topic, const std::string& address) {
    const std::scoped_lock lock(mutex_);
    return heard_[topic].contains(address);
  }

 private:
  struct Entry {
    std::string topic;
    nlohmann::json facts;
  };

  // Administratively scoped (RFC 2365): no router forwards it.
  static constexpr const char* group = "239.255.76.71";
  static constexpr uint16_t port = 24'703;
  static constexpr size_t message_bytes_max = 4096;
  static constexpr int times_told = 3;  // a link may lose messages, and nobody confirms these

  static void set_option(int socket, int level, int option, const void* value, socklen_t size) {
    if (setsockopt(socket, level, option, value, size) != 0)
      throw_system_error("setting up a socket to look for subscribers on other hosts");
  }

  static Descriptor bound_to(const sockaddr_in& end, bool shared) {
    Descriptor result(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!result.valid()) throw_system_error("making a UDP socket");
    const int yes = 1;
    if (shared) set_option(result.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(result.get(), reinterpret_cast<const sockaddr*>(&end), sizeof end) != 0)
      throw_system_error("binding a socket to " + internet::text_of(end));
    return result;
  }

  /// Every process of a host receives what is said to everyone.
  static Descriptor hearing_everyone(const sockaddr_in& link) {
    Descriptor result = bound_to(internet::end_at(group, port), true);
    const ip_mreq membership{.imr_multiaddr = internet::end_at(group, port).sin_addr, .imr_interface = link.sin_addr};
    set_option(result.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership);
    return result;
  }

  /// Asks, answers, and receives answers.
  static Descriptor asking(const sockaddr_in& link) {
    Descriptor result = bound_to(link, false);
    set_option(result.get(), IPPROTO_IP, IP_MULTICAST_IF, &link.sin_addr, sizeof link.sin_addr);
    return result;
  }

  /// The next received message; null if it is not JSON.
  static std::optional<std::pair<nlohmann::json, sockaddr_in>> next_message(int socket) {
    std::array<char, message_bytes_max> text{};
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t got =
        recvfrom(socket, text.data(), text.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) return std::nullopt;
    return std::pair{nlohmann::json::parse(text.data(), text.data() + got, nullptr, false), from};
  }

  /// What can't be sent now is asked again later.
  void send_message(nlohmann::json message, const sockaddr_in& to) const {
    message["place"] = place_;
    const std::string text = message.dump();
    static_cast<void>(sendto(own_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }

  void tell(const nlohmann::json& news) const {
    for (int time = 0; time < times_told; ++time) send_message(news, internet::end_at(group, port));
  }

  /// Returns whether a subscriber has come or gone. Under the lock.
  bool heed(const nlohmann::json& said, const sockaddr_in& from) {
    if (!said.is_object() || said.value("place", nlohmann::json()) != place_) return false;
    const auto topic = said.at("topic").get<std::string>();
    if (said.contains("gone")) return heard_[topic].erase(said.at("gone").get<std::string>()) != 0;
    if (said.contains("facts")) {
      const auto& facts = said.at("facts");
      return heard_[topic].insert_or_assign(facts.at("address").get<std::string>(), facts).second;
    }
    for (const auto& [number, entry] : entries_) {
      if (entry.topic == topic) send_message({{"topic", topic}, {"facts", entry.facts}}, from);
    }
    return false;
  }

  nlohmann::json place_;
  Unasked unasked_;
  Descriptor everyones_;
  Descriptor own_;
  std::mutex mutex_;
  std::map<uint32_t, Entry> entries_;
  uint32_t last_entry_ = 0;
  std::map<std::string, std::map<std::string, nlohmann::json>> heard_;  // by topic and address
};

/// The link to other hosts, as a context's configuration gives it.
struct Link {
  explicit Link(const lagometer_context_config& config) {
    if (view(config.network).empty()) return;
    const auto network = nlohmann::json::parse(view(config.network));
    address = network.value("address", "");
    trial = network.value("trial", "");
  }
  /// What this trial's endpoints of an adapter in a domain have in common, and no others.
  [[nodiscard]] nlohmann::json place(std::string_view adapter, uint32_t domain) const {
    return {{"trial", trial}, {"adapter", std::string(adapter)}, {"domain", domain}};
  }
  std::string address;  // this host's; empty: there is no other host
  std::string trial;
};

}  // namespace lagometer::rendezvous
