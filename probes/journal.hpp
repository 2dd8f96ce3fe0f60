// SPDX-License-Identifier: Apache-2.0
// Where calls are recorded: chunks of one file in memory, each for one thread. After the start nothing is allocated and
// no thread waits for another; the kernel is asked once per chunk, for the thread's number and name.
#pragma once

#include <cstdint>
#include <span>

#include "records.hpp"

namespace lagometer::probes {

struct Moment {
  int64_t ns;
  uint16_t cpu;
};

/// Whether this process records calls.
[[nodiscard]] bool is_on() noexcept;
/// Whether the program is not one of ours: its messages have no envelope, and what it creates is recorded, too.
[[nodiscard]] bool follows_programs() noexcept;
/// Whether this process is such a program, and is recorded now.
[[nodiscard]] inline bool records_program() noexcept { return is_on() && follows_programs(); }
[[nodiscard]] Moment now() noexcept;

/// One call in progress: the time of its entry.
class Entered {
 public:
  Entered() noexcept : begin_(now()) {}
  /// Notes the time of its return.
  void left() noexcept { end_ = now(); }
  /// Records it; `record` has the call's own fields. Keeps errno.
  void write(Call call, CallRecord record, std::span<const KeyRecord> keys = {}) const noexcept;

 private:
  Moment begin_;
  Moment end_{};
};

}  // namespace lagometer::probes
