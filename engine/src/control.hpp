// SPDX-License-Identifier: Apache-2.0
// The two pipes to the conductor (docs/PROTOCOL.md): JSON lines out, the plan and commands in.
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
  /// Moves standard output away, so that whatever middleware prints goes to stderr.
  Control();

  /// The first line of standard input. Throws std::runtime_error if there is none.
  std::string read_plan();
  /// A command, or nothing until the clock reads `until_ns`. An unknown command throws std::runtime_error.
  std::optional<Command> wait(int64_t until_ns);
  /// After this, end of input is no command any more.
  void ignore_end_of_input() noexcept { end_ignored_ = true; }

  /// One JSON line. Ends the process quietly if nobody reads any more.
  void send(const nlohmann::json& message);
  /// A `records` line and the block behind it.
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
