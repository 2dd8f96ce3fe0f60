// SPDX-License-Identifier: Apache-2.0
// The two pipes to the conductor (docs/PROTOCOL.md): JSON lines go out, the plan and commands come in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

namespace lagometer::engine {

struct Command {
  enum class Kind { go, stop, end_of_input } kind = Kind::end_of_input;
  int64_t at_ns = 0;
};

class Control {
 public:
  /// Moves standard output away, so that anything the middleware prints goes to stderr.
  Control();

  /// The first line of standard input. Throws std::runtime_error if there is no line.
  std::string read_plan();
  /// A command, or nothing if the clock reaches `until_ns` first. An unknown command throws std::runtime_error.
  std::optional<Command> wait(int64_t until_ns);
  /// After this, end of input no longer counts as a command.
  void ignore_end_of_input() noexcept { end_ignored_ = true; }

  /// Writes one JSON line. Ends the process quietly if nobody reads any more.
  void send(const nlohmann::json& message);
  /// Writes a `records` line and then the block.
  void send_block(std::span<const std::byte> block);
  [[nodiscard]] bool output_is_terminal() const noexcept;

 private:
  bool fill(int64_t until_ns);
  std::optional<std::string> next_line();

  int output_ = -1;
  std::string pending_;
  bool ended_ = false;
  bool end_ignored_ = false;
  bool end_reported_ = false;
};

}  // namespace lagometer::engine
