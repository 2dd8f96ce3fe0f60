// SPDX-License-Identifier: Apache-2.0
#include "tracepoints.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace lagometer::scheduler {
namespace {

constexpr size_t kTracepointBytesMax = 4096;
constexpr std::array kFolders = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/// Mounts tracefs where nobody else sees it; it disappears with this process.
bool mount_for_us(const char* folder) {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tracefs", folder, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr) == 0;
}

}  // namespace

Tracepoint parse_format(std::string_view text, const std::vector<std::string>& needed) {
  static const std::regex kNumber("^ID: ([0-9]+)$");
  static const std::regex kField(R"(^\s*field:.*?(\w+)(\[[^\]]*\])?;\s*offset:([0-9]+);\s*size:([0-9]+);.*$)");
  Tracepoint found;
  std::istringstream lines{std::string(text)};
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, kNumber)) {
      found.number = static_cast<uint16_t>(std::stoul(match[1]));
    } else if (std::regex_match(line, match, kField)) {
      const Field field{.offset = std::stoul(match[3]), .bytes = std::stoul(match[4])};
      if (field.offset + field.bytes > kTracepointBytesMax)
        throw std::runtime_error("the field " + match[1].str() + " of a tracepoint lies beyond its end");
      found.fields[match[1]] = field;
    }
  }
  if (found.number == 0) throw std::runtime_error("a tracepoint has no number");
  for (const auto& name : needed)
    if (!found.fields.contains(name)) throw std::runtime_error("a tracepoint lacks the field " + name);
  return found;
}

std::string tracing_folder() {
  for (const char* folder : kFolders)
    if (access((std::string(folder) + "/events/sched").c_str(), R_OK | X_OK) == 0) return folder;
  const int reason = errno;
  if (mount_for_us(kFolders[0]) && access((std::string(kFolders[0]) + "/events/sched").c_str(), R_OK | X_OK) == 0)
    return kFolders[0];
  if (reason == EACCES)
    throw std::runtime_error(
        "EACCES: tracefs may not be read: run as root, or `mount -o remount,mode=755 /sys/kernel/tracing`");
  throw std::runtime_error("ENOENT: there is no tracefs: `mount -t tracefs tracefs /sys/kernel/tracing` as root");
}

Tracepoint read_tracepoint(const std::string& folder, const std::string& name, const std::vector<std::string>& needed,
                           const std::string& group) {
  std::ifstream file(folder + "/events/" + group + "/" + name + "/format");
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty())
    throw std::runtime_error("ENOENT: the kernel has no tracepoint " + group + ":" + name);
  return parse_format(text.str(), needed);
}

}  // namespace lagometer::scheduler
