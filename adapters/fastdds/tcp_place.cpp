// SPDX-License-Identifier: Apache-2.0
#include "tcp_place.hpp"

#include <arpa/inet.h>
#include <fastdds/rtps/common/PortParameters.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "settings.hpp"

namespace lagometer::fastdds {
namespace {

using nlohmann::json;

constexpr uint16_t kFirstPort = 5100;  // as in the vendor's examples; below the ports that the kernel gives away
constexpr uint16_t kPorts = 4096;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int value() const noexcept { return value_; }

 private:
  int value_;
};

/// The list of who is there, as JSON, locked against the other participants of the trial.
class LockedList {
 public:
  explicit LockedList(const std::string& file)
      : file_(file), descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor_.value() < 0 || flock(descriptor_.value(), LOCK_EX) != 0) complain("opened");
  }

  [[nodiscard]] json read() const {
    std::string text;
    std::array<char, 4096> piece{};
    ssize_t got = 0;
    while ((got = pread(descriptor_.value(), piece.data(), piece.size(), static_cast<off_t>(text.size()))) > 0) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
    json list = json::parse(text, nullptr, false);
    return list.is_object() ? list : json{{"next", 0}, {"members", json::array()}};
  }

  void write(const json& list) const {
    const std::string text = list.dump();
    const bool written = ftruncate(descriptor_.value(), 0) == 0 &&
                         pwrite(descriptor_.value(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    if (!written) complain("written");
  }

 private:
  [[noreturn]] void complain(const char* what) const {
    throw Error(LAGOMETER_NO_RESOURCE, "fastdds: the list of participants over TCP, " + file_ + ", can't be " + what +
                                           ": " + std::strerror(errno));
  }

  std::string file_;
  Descriptor descriptor_;
};

// Like the vendor's own socket: connections that just ended are no hindrance, somebody who listens is.
bool is_free(uint16_t port) {
  const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(probe.value(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(probe.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

uint16_t choose_port(const std::vector<uint16_t>& taken) {
  for (uint16_t port = kFirstPort; port < kFirstPort + kPorts; ++port) {
    if (std::find(taken.begin(), taken.end(), port) == taken.end() && is_free(port)) return port;
  }
  throw Error(LAGOMETER_NO_RESOURCE, "fastdds: no TCP port is free on 127.0.0.1 from " + std::to_string(kFirstPort) +
                                         " to " + std::to_string(kFirstPort + kPorts - 1));
}

// The library ends the process if a port does not exist, so the highest that it derives is looked at first.
uint16_t logical_port(uint32_t domain, uint32_t participant) {
  const eprosima::fastrtps::rtps::PortParameters ports;
  const uint64_t highest = uint64_t{ports.portBase} + uint64_t{ports.domainIDGain} * domain +
                           uint64_t{ports.participantIDGain} * participant + std::max(ports.offsetd1, ports.offsetd3);
  refuse(highest > UINT16_MAX, "domain " + std::to_string(domain) + " has no room for participant number " +
                                   std::to_string(participant) + " over TCP: choose a lower domain");
  return static_cast<uint16_t>(ports.getUnicastPort(domain, participant));
}

}  // namespace

TcpPlace::TcpPlace(std::string_view runtime_directory, uint32_t domain)
    : file_(std::string(runtime_directory) + "/fastdds-tcp.json") {
  refuse(runtime_directory.empty(), "transport tcp needs a runtime directory, in which participants find each other");
  enter(domain);
}

TcpPlace::~TcpPlace() {
  try {
    leave();
  } catch (const std::exception& error) {
    lagometer::log(LAGOMETER_LOG_WARNING, error.what());
  }
}

void TcpPlace::enter(uint32_t domain) {
  const LockedList locked(file_);
  json list = locked.read();
  std::vector<uint16_t> taken;
  for (const json& member : list["members"]) {
    taken.push_back(member["port"].get<uint16_t>());
    if (member["domain"] == domain) peers_.push_back({taken.back(), member["logical_port"].get<uint16_t>()});
  }
  participant_ = list["next"].get<uint32_t>();  // never given twice: a participant's GUID follows from it, too
  own_ = {choose_port(taken), logical_port(domain, participant_)};
  list["next"] = participant_ + 1;
  list["members"].push_back({{"domain", domain}, {"port", own_.port}, {"logical_port", own_.logical_port}});
  locked.write(list);
}

void TcpPlace::leave() {
  const LockedList locked(file_);
  json list = locked.read();
  json& members = list["members"];
  const auto own = std::remove_if(members.begin(), members.end(),
                                  [this](const json& member) { return member["port"] == own_.port; });
  members.erase(own, members.end());
  locked.write(list);
}

void TcpPlace::require_listening() const {
  if (!is_free(own_.port)) return;
  throw Error(LAGOMETER_NO_RESOURCE, "fastdds: nobody listens on TCP port " + std::to_string(own_.port) +
                                         " of 127.0.0.1: see the lines of Fast DDS above");
}

}  // namespace lagometer::fastdds
