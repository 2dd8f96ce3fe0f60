// SPDX-License-Identifier: Apache-2.0
// Where calls are written down: chunks of one file in memory, each of one thread. After the start nothing is allocated
// and nobody waits for anybody; the kernel is asked once per chunk, for the thread's number and name.
#pragma once

#include <cstdint>
#include <span>

#include "records.hpp"

namespace lagometer::probes {

struct Moment {
  int64_t ns;
  uint16_t cpu;
};

/// Whether calls are written down in this process.
[[nodiscard]] bool is_on() noexcept;
/// Whether the program is not one of ours: its messages have no envelope, and what it creates is written down, too.
[[nodiscard]] bool follows_programs() noexcept;
[[nodiscard]] Moment now() noexcept;

/// One call that is under way: the moment of its entry.
class Entered {
 public:
  Entered() noexcept : begin_(now()) {}
  /// Notes the moment of its return.
  void left() noexcept { end_ = now(); }
  /// Writes it down; `record` has what is particular to it. Keeps errno.
  void write(Call call, CallRecord record, std::span<const KeyRecord> keys = {}) const noexcept;

 private:
  Moment begin_;
  Moment end_{};
};

}  // namespace lagometer::probes
