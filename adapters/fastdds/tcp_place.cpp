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
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "descriptor.hpp"
#include "settings.hpp"

namespace lagometer::fastdds {
namespace {

using nlohmann::json;

constexpr uint16_t kFirstPort = 5100;  // as in the vendor's examples; below the ports that the kernel assigns
constexpr uint16_t kPorts = 4096;

// How long a leaving participant waits: for others to leave, too, which may not be about to; until what they send is
// over; and for those after it, each of which takes some 10 ms.
constexpr auto kOthersToo = std::chrono::milliseconds(250);
constexpr auto kSilence = std::chrono::milliseconds(30);
constexpr auto kLaterOnes = std::chrono::milliseconds(1000);
constexpr auto kLook = std::chrono::milliseconds(2);

}  // namespace

/// The list of present participants, as JSON, locked against the other participants of the trial.
class TcpList {
 public:
  explicit TcpList(const std::string& file)
      : file_(file), descriptor_(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (descriptor_.get() < 0 || flock(descriptor_.get(), LOCK_EX) != 0) complain("opened");
  }

  [[nodiscard]] json read() const {
    std::string text;
    std::array<char, 4096> piece{};
    ssize_t got = 0;
    while ((got = pread(descriptor_.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()))) > 0) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
    json list = json::parse(text, nullptr, false);
    return list.is_object() ? list : json{{"next", 0}, {"next_port", kFirstPort}, {"members", json::array()}};
  }

  void write(const json& list) const {
    const std::string text = list.dump();
    const bool written = ftruncate(descriptor_.get(), 0) == 0 &&
                         pwrite(descriptor_.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
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

namespace {

// Like the vendor's own socket: recently ended connections don't matter, a listening socket does.
bool is_free(uint16_t port) {
  const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// A trial does not reuse a port while others are free: a participant that still has it among its initial peers would
// connect to it.
uint16_t choose_port(uint16_t first) {
  for (uint16_t i = 0; i < kPorts; ++i) {
    const auto port = static_cast<uint16_t>(kFirstPort + (first - kFirstPort + i) % kPorts);
    if (is_free(port)) return port;
  }
  throw Error(LAGOMETER_NO_RESOURCE, "fastdds: no TCP port is free on 127.0.0.1 from " + std::to_string(kFirstPort) +
                                         " to " + std::to_string(kFirstPort + kPorts - 1));
}

// The library ends the process if a port does not exist, so this checks the highest one that it derives first.
uint16_t logical_port(uint32_t domain, uint32_t participant) {
  const eprosima::fastrtps::rtps::PortParameters ports;
  const uint64_t highest = uint64_t{ports.portBase} + uint64_t{ports.domainIDGain} * domain +
                           uint64_t{ports.participantIDGain} * participant + std::max(ports.offsetd1, ports.offsetd3);
  refuse(highest > UINT16_MAX, "domain " + std::to_string(domain) + " has no room for participant number " +
                                   std::to_string(participant) + " over TCP: choose a lower domain");
  return static_cast<uint16_t>(ports.getUnicastPort(domain, participant));
}

bool is(const TcpEnd& end, const json& member) { return member["participant"] == end.participant; }

// A killed process stays in the list.
bool is_there(const json& member) { return !is_free(member["port"].get<uint16_t>()); }

// Process numbers would not work: each worker may have its own PID namespace.
uint32_t this_process() {
  static const uint32_t drawn = std::random_device()();
  return drawn;
}

// Waits until the condition holds, or about this long.
template <typename Condition>
void wait_at_most(std::chrono::milliseconds longest, Condition holds) {
  const auto until = std::chrono::steady_clock::now() + longest;
  while (!holds() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(kLook);
}

}  // namespace

TcpPlace::TcpPlace(std::string_view runtime_directory, uint32_t domain)
    : file_(std::string(runtime_directory) + "/fastdds-tcp.json"), domain_(domain) {
  refuse(runtime_directory.empty(), "transport tcp needs a runtime directory, in which participants find each other");
  const TcpList locked(file_);
  json list = locked.read();
  participant_ = list["next"].get<uint32_t>();  // never reused: a participant's GUID depends on it, too
  own_.logical_port = logical_port(domain, participant_);
  list["next"] = participant_ + 1;
  locked.write(list);
}

TcpPlace::~TcpPlace() {
  if (own_.participant.empty()) return;
  try {
    const TcpList locked(file_);
    json list = locked.read();
    json& members = list["members"];
    members.erase(std::remove_if(members.begin(), members.end(), [this](const json& each) { return is(own_, each); }),
                  members.end());
    locked.write(list);
  } catch (const std::exception& error) {
    lagometer::log(LAGOMETER_LOG_WARNING, error.what());
  }
}

std::vector<std::string> TcpPlace::peers_to_meet() const {
  if (peers_.empty()) return {};
  const json list = TcpList(file_).read();
  std::vector<std::string> result;
  for (const json& member : list["members"]) {
    const auto same = [&member](const TcpEnd& peer) { return is(peer, member); };
    const bool awaited = std::any_of(peers_.begin(), peers_.end(), same) && member["leaves"] == false;
    if (awaited && is_there(member)) result.push_back(member["participant"]);
  }
  return result;
}

void TcpPlace::await_turn_to_leave() {
  if (own_.participant.empty()) return;
  {
    const TcpList locked(file_);
    json list = locked.read();
    for (json& member : list["members"]) {
      if (is(own_, member)) member["leaves"] = true;
    }
    locked.write(list);
  }
  if (others().empty()) return;
  const auto stays = [](const Other& other) { return !other.leaves; };
  wait_at_most(kOthersToo, [&] { return std::ranges::none_of(others(), stays); });
  std::this_thread::sleep_for(kSilence);
  const auto goes_first = [this](const Other& other) { return other.leaves && other.number > participant_; };
  wait_at_most(kLaterOnes, [&] { return std::ranges::none_of(others(), goes_first); });
}

std::vector<TcpPlace::Other> TcpPlace::others() const {
  const json list = TcpList(file_).read();
  std::vector<Other> result;
  for (const json& member : list["members"]) {
    // Those of this process leave in the order in which it closes them.
    if (member["domain"] != domain_ || member["process"] == this_process() || !is_there(member)) continue;
    result.push_back({member["number"].get<uint32_t>(), member["leaves"].get<bool>()});
  }
  return result;
}

TcpPlace::Turn::Turn(TcpPlace& place) : place_(place), list_(std::make_unique<TcpList>(place.file_)) {
  const json list = list_->read();
  for (const json& member : list["members"]) {
    if (member["domain"] != place_.domain_ || member["leaves"] == true || !is_there(member)) continue;
    place_.peers_.push_back(
        {member["port"].get<uint16_t>(), member["logical_port"].get<uint16_t>(), member["participant"]});
  }
  place_.own_.port = choose_port(list["next_port"].get<uint16_t>());
}

TcpPlace::Turn::~Turn() = default;

void TcpPlace::Turn::join(const std::string& participant) {
  const TcpEnd& own = place_.own_;
  if (is_free(own.port)) {
    throw Error(LAGOMETER_NO_RESOURCE, "fastdds: nobody listens on TCP port " + std::to_string(own.port) +
                                           " of 127.0.0.1: see the lines of Fast DDS above");
  }
  place_.own_.participant = participant;
  json list = list_->read();
  list["next_port"] = own.port + 1;
  list["members"].push_back({{"domain", place_.domain_},
                             {"number", place_.participant_},
                             {"port", own.port},
                             {"logical_port", own.logical_port},
                             {"participant", participant},
                             {"process", this_process()},
                             {"leaves", false}});
  list_->write(list);
}

}  // namespace lagometer::fastdds
