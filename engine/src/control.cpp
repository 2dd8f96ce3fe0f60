// SPDX-License-Identifier: Apache-2.0
#include "control.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "clock.hpp"
#include "plan_bounds.hpp"

namespace lagometer::engine {

namespace {

constexpr int64_t kForever_ns = std::numeric_limits<int64_t>::max();

void write_all(int descriptor, const void* bytes, size_t count) {
  const auto* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t written = ::write(descriptor, at, count);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // the conductor is gone: nobody to report to
    at += written;
    count -= static_cast<size_t>(written);
  }
}

/// Throws std::runtime_error.
Command command_in(const std::string& line) {
  const auto message = nlohmann::json::parse(line, nullptr, false);
  const auto has = [&message](const char* name) {
    return message.is_object() && message.contains("command") && message["command"] == name;
  };
  if (has("stop")) return Command{.kind = Command::Kind::stop};
  if (has("go") && message.contains("at_ns") && message["at_ns"].is_number_unsigned()) {
    const auto at_ns = message["at_ns"].get<uint64_t>();
    if (at_ns >= 1 && at_ns <= uint64_t{kAtMax_ns})
      return Command{.kind = Command::Kind::go, .at_ns = static_cast<int64_t>(at_ns)};
  }
  throw std::runtime_error("standard input: not a command: " + line.substr(0, 200));
}

}  // namespace

Control::Control() {
  std::signal(SIGPIPE, SIG_IGN);
  output_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 16);
  if (output_ < 0) throw std::runtime_error("standard output can't be copied: " + std::string(std::strerror(errno)));
  if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (dup2(nothing, STDOUT_FILENO) < 0)
      throw std::runtime_error("standard output can't be replaced: " + std::string(std::strerror(errno)));
  }
}

std::optional<std::string> Control::next_line() {
  const size_t end = pending_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

bool Control::fill(int64_t until_ns) {
  timespec left{};
  timespec* timeout = nullptr;
  if (until_ns != kForever_ns) {
    left = to_timespec(std::max<int64_t>(until_ns - now_ns(), 0));
    timeout = &left;
  }
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (ended_) input.fd = -1;
  const int ready = ppoll(&input, 1, timeout, nullptr);
  if (ready <= 0) return ready < 0 && errno == EINTR;
  char buffer[65536];
  const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
  if (count > 0) {
    pending_.append(buffer, static_cast<size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    ended_ = true;
  }
  if (pending_.size() > kLineBytesMax) throw std::runtime_error("standard input: a line of more than 64 MiB");
  return true;
}

std::string Control::read_plan() {
  for (;;) {
    if (auto line = next_line()) return *line;
    if (ended_) {
      if (pending_.empty())
        throw std::runtime_error("standard input: expected a plan (one JSON object on one line), got nothing");
      return std::exchange(pending_, {});
    }
    fill(kForever_ns);
  }
}

std::optional<Command> Control::wait(int64_t until_ns) {
  for (;;) {
    if (const auto line = next_line()) return command_in(*line);
    if (ended_ && !end_ignored_ && !end_reported_) {
      end_reported_ = true;
      return Command{.kind = Command::Kind::end_of_input};
    }
    if (now_ns() >= until_ns) return std::nullopt;
    if (!fill(until_ns)) return std::nullopt;
  }
}

void Control::send(const nlohmann::json& message) {
  const std::string line = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  write_all(output_, line.data(), line.size());
}

void Control::send_block(std::span<const std::byte> block) {
  uLong checksum = crc32_z(0, nullptr, 0);
  checksum = crc32_z(checksum, reinterpret_cast<const Bytef*>(block.data()), block.size());
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08lx", checksum);
  send({{"event", "records"}, {"bytes", block.size()}, {"crc32", digits}});
  write_all(output_, block.data(), block.size());
}

bool Control::output_is_terminal() const noexcept { return isatty(output_) == 1; }

}  // namespace lagometer::engine
