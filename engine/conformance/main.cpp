// SPDX-License-Identifier: Apache-2.0
// lagometer-conformance: one process of a conformance check. It opens an adapter by its path, knows no middleware,
// carries out the orders on standard input (peer.hpp) and ends with it. `lagometer conformance` starts it and judges.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "peer.hpp"

namespace lagometer::conformance {

namespace {

int own_output = STDOUT_FILENO;

/// The middleware's own output is counted and kept out of our lines.
bool take_output_aside() {
  own_output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 100);
  const int printed = memfd_create("printed", MFD_CLOEXEC);
  return own_output >= 0 && printed >= 0 && dup2(printed, STDOUT_FILENO) >= 0;
}

void allow_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  constexpr rlim_t kEnough = 65'536;  // some libraries walk over all possible descriptors
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  setrlimit(RLIMIT_NOFILE, &limit);
}

constexpr const char* kHelp =
    "usage: lagometer-conformance    one process of a conformance check, driven by JSON lines on standard input\n"
    "Started by `lagometer conformance ADAPTER`; by hand: echo '{\"do\":\"held\"}' | lagometer-conformance\n";

int run(int count, char** arguments) {
  if (count > 1) {
    const bool asked = std::string_view(arguments[1]) == "--help";
    std::fputs(kHelp, asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  if (!take_output_aside()) return 1;
  allow_descriptors();
  tell_progress();
  Peer peer;
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json order = nlohmann::json::parse(line, nullptr, false);
    say(order.is_object() ? peer.answer(order) : nlohmann::json{{"ok", false}, {"reason", "not a JSON object"}});
  }
  return 0;
}

}  // namespace

void say(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = write(own_output, line.data() + at, line.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // nobody is reading any more
    at += static_cast<size_t>(written);
  }
}

}  // namespace lagometer::conformance

int main(int count, char** arguments) {
  try {
    return lagometer::conformance::run(count, arguments);
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
    return 1;
  }
}
