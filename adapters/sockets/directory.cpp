// SPDX-License-Identifier: Apache-2.0
#include "directory.hpp"

#include <sys/socket.h>

#include <array>
#include <optional>
#include <utility>

#include "internet.hpp"

namespace lagometer::sockets {

namespace {

// Administratively scoped (RFC 2365): no router forwards it.
constexpr const char* group = "239.255.76.71";
constexpr uint16_t port = 24'703;
constexpr size_t message_bytes_max = 4096;

void set_option(int socket, int level, int option, const void* value, socklen_t size) {
  if (setsockopt(socket, level, option, value, size) != 0)
    throw_system_error("setting up a socket to look for subscribers on other hosts");
}

void bind_to(int socket, const sockaddr_in& end) {
  if (bind(socket, reinterpret_cast<const sockaddr*>(&end), sizeof end) != 0)
    throw_system_error("binding a socket to " + text_of(end));
}

Descriptor new_socket() {
  Descriptor result(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.valid()) throw_system_error("making a UDP socket");
  return result;
}

/// Every process of a host receives the questions.
Descriptor hearing_questions(const sockaddr_in& link) {
  Descriptor result = new_socket();
  const int yes = 1;
  set_option(result.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  bind_to(result.get(), end_at(group, port));
  const ip_mreq membership{.imr_multiaddr = end_at(group, port).sin_addr, .imr_interface = link.sin_addr};
  set_option(result.get(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership);
  return result;
}

Descriptor asking(const sockaddr_in& link) {
  Descriptor result = new_socket();
  bind_to(result.get(), link);
  set_option(result.get(), IPPROTO_IP, IP_MULTICAST_IF, &link.sin_addr, sizeof link.sin_addr);
  return result;
}

/// The next received message; null if it is not a JSON object.
std::optional<std::pair<nlohmann::json, sockaddr_in>> next_message(int socket) {
  std::array<char, message_bytes_max> text{};
  sockaddr_in from{};
  socklen_t size = sizeof from;
  const ssize_t got =
      recvfrom(socket, text.data(), text.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
  if (got < 0) return std::nullopt;
  return std::pair{nlohmann::json::parse(text.data(), text.data() + got, nullptr, false), from};
}

/// What can't be sent now is asked again later.
void send_message(int socket, const nlohmann::json& message, const sockaddr_in& to) {
  const std::string text = message.dump();
  static_cast<void>(sendto(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                           reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

}  // namespace

Directory::Directory(const std::string& link, nlohmann::json place, std::shared_ptr<EpollSet> set)
    : place_(std::move(place)),
      set_(std::move(set)),
      questions_(hearing_questions(end_at(link, 0))),
      own_(asking(end_at(link, 0))),
      slot_(set_->join(*this)) {
  set_->watch(questions_.get(), slot_, 0);
}

Directory::~Directory() {
  set_->forget(questions_.get());
  set_->leave(slot_);
}

uint32_t Directory::add(const std::string& topic, const nlohmann::json& facts) {
  const std::scoped_lock lock(mutex_);
  entries_.emplace(++last_entry_, Entry{topic, facts});
  return last_entry_;
}

void Directory::remove(uint32_t entry) noexcept {
  const std::scoped_lock lock(mutex_);
  entries_.erase(entry);
}

std::vector<rendezvous::Found> Directory::look_for(const std::string& topic) {
  send_message(own_.get(), {{"place", place_}, {"topic", topic}}, end_at(group, port));
  const std::scoped_lock lock(mutex_);
  hear_answers();
  std::vector<rendezvous::Found> result;
  for (const auto& [address, facts] : heard_[topic]) result.push_back({address, facts, {}});
  return result;
}

void Directory::hear_answers() {
  while (const auto message = next_message(own_.get())) {
    const nlohmann::json& said = message->first;
    if (!said.is_object() || said.value("place", nlohmann::json()) != place_) continue;
    const auto& facts = said.at("facts");
    heard_[said.at("topic").get<std::string>()][facts.at("address").get<std::string>()] = facts;
  }
}

void Directory::readable(uint32_t) noexcept {
  static_cast<void>(guarded([this] {
    while (const auto message = next_message(questions_.get())) {
      const auto& [question, asker] = *message;
      if (question.is_object() && question.value("place", nlohmann::json()) == place_) answer(question, asker);
    }
    return LAGOMETER_OK;
  }));
}

void Directory::answer(const nlohmann::json& question, const sockaddr_in& asker) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [number, entry] : entries_) {
    if (question.value("topic", "") != entry.topic) continue;
    send_message(own_.get(), {{"place", place_}, {"topic", entry.topic}, {"facts", entry.facts}}, asker);
  }
}

}  // namespace lagometer::sockets
