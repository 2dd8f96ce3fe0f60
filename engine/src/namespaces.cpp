// SPDX-License-Identifier: Apache-2.0
#include "namespaces.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>

namespace lagometer::supervisor {

namespace {

// A new namespace starts with the kernel's defaults; settings that the user tuned on the host must also apply inside.
constexpr std::array kCarriedOver = {
    // of the network
    "net/core/rmem_max", "net/core/wmem_max", "net/core/rmem_default", "net/core/wmem_default",
    "net/ipv4/ipfrag_high_thresh", "net/ipv4/ipfrag_time", "net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem",
    "net/ipv4/udp_rmem_min", "net/ipv4/udp_wmem_min", "net/core/busy_poll", "net/core/busy_read",
    // of IPC objects
    "fs/mqueue/msg_max", "fs/mqueue/msgsize_max", "fs/mqueue/msg_default", "fs/mqueue/msgsize_default",
    "fs/mqueue/queues_max", "kernel/sem", "kernel/shmmax", "kernel/shmall", "kernel/shmmni", "kernel/shm_rmid_forced",
    "kernel/msgmax", "kernel/msgmnb", "kernel/msgmni"};

std::map<std::string, std::string> host_settings;

std::string reason() { return std::strerror(errno); }

std::string read_line(const std::string& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  if (!file) throw std::runtime_error("can't write " + path + ": " + reason());
}

constexpr int kNamespaces = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID;

/// Closes a descriptor at the end of its scope.
struct Descriptor {
  explicit Descriptor(int number) : value(number) {}
  ~Descriptor() {
    if (value >= 0) close(value);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

sockaddr address(const char* text) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  inet_pton(AF_INET, text, &in.sin_addr);
  sockaddr result{};
  static_assert(sizeof result == sizeof in);
  std::memcpy(&result, &in, sizeof in);
  return result;
}

void add_route(int control, const char* destination, const char* mask) {
  rtentry route{};
  route.rt_dst = address(destination);
  route.rt_genmask = address(mask);
  route.rt_flags = RTF_UP;
  std::array<char, 3> device = {'l', 'o', '\0'};
  route.rt_dev = device.data();
  if (ioctl(control, SIOCADDRT, &route) != 0 && errno != EEXIST)
    throw std::runtime_error("can't route " + std::string(destination) + " over lo: " + reason());
}

void raise_loopback() {
  const Descriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK | IFF_MULTICAST;
  if (ioctl(control.value, SIOCSIFFLAGS, &request) != 0)
    throw std::runtime_error("can't raise the loopback: " + reason());
  add_route(control.value, "224.0.0.0", "240.0.0.0");
  add_route(control.value, "0.0.0.0", "0.0.0.0");
}

/// Settings that a namespace does not have its own copy of can't differ. Settings that can't be carried over become
/// warnings.
void carry_over_settings(std::vector<std::string>& warnings) {
  for (const auto& [name, value] : host_settings) {
    const std::string path = "/proc/sys/" + name;
    if (value.empty() || read_line(path) == value) continue;
    std::ofstream(path) << value;
    if (const std::string inside = read_line(path); !inside.empty() && inside != value)
      warnings.push_back(
          std::string(name)
              .append(" is ")
              .append(inside)
              .append(" in the private machine and ")
              .append(value)
              .append(" outside: it can't be carried over without root; run as root or with network: host"));
  }
}

}  // namespace

Isolation enter_namespaces() {
  for (const char* name : kCarriedOver) host_settings[name] = read_line(std::string("/proc/sys/") + name);
  Isolation isolation;
  if (unshare(kNamespaces) == 0) return isolation;
  if (errno != EPERM) throw std::runtime_error("can't make namespaces: " + reason());
  const auto user = std::to_string(geteuid());
  const auto group = std::to_string(getegid());
  if (unshare(CLONE_NEWUSER | kNamespaces) != 0) {
    throw std::runtime_error(
        "can't make private namespaces: " + reason() +
        "; run as root, allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu "
        "kernel.apparmor_restrict_unprivileged_userns=0), or measure with network: host");
  }
  isolation.user_namespace = true;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", user + " " + user + " 1");
  write_file("/proc/self/gid_map", group + " " + group + " 1");
  return isolation;
}

void furnish(Isolation& isolation) {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw std::runtime_error("can't make mounts private: " + reason());
  if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    isolation.warnings.push_back("/proc is the host's: " + reason());
  if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    throw std::runtime_error("can't mount a private /dev/shm: " + reason());
  raise_loopback();
  if (std::filesystem::is_directory("/dev/mqueue") &&
      mount("mqueue", "/dev/mqueue", "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    isolation.warnings.push_back("/dev/mqueue shows the host's message queues: " + reason());
  carry_over_settings(isolation.warnings);
}

}  // namespace lagometer::supervisor
