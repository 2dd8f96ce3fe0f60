// SPDX-License-Identifier: Apache-2.0
// What Fast DDS has once per process, whoever created the participants in it.
#pragma once

#include "settings.hpp"

namespace lagometer::fastdds {

/// A participant's share in the library. While there is any share, intra-process delivery stays as the first one set
/// it; when the last share ends, so does the library's log thread.
class LibraryUse {
 public:
  /// Has the library read the file of profiles. Throws Error(LAGOMETER_INVALID) if it can't be read, or if participants
  /// of this process have a different intra-process delivery.
  explicit LibraryUse(const Settings& settings);
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;

  /// Intra-process delivery: the option's, otherwise the file's.
  [[nodiscard]] IntraProcess intra_process() const noexcept { return intra_process_; }
  /// Whether the file of profiles has a default profile or library settings: otherwise it changes nothing.
  [[nodiscard]] static bool profiles_change_something();

 private:
  IntraProcess intra_process_;
};

/// The vendor's XML name for it.
const char* name_of(IntraProcess intra_process) noexcept;

}  // namespace lagometer::fastdds
