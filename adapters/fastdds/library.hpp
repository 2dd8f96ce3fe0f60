// SPDX-License-Identifier: Apache-2.0
// What Fast DDS has once per process, whoever made the participants in it.
#pragma once

#include "settings.hpp"

namespace lagometer::fastdds {

/// A participant's share in the library. While anybody has one, delivery within the process stays as the first wanted
/// it; when the last is given back, the library's log thread ends.
class LibraryUse {
 public:
  /// Has the library read the file of profiles. Throws Error(LAGOMETER_INVALID) if that can't be read, or if
  /// participants of this process have another delivery within the process.
  explicit LibraryUse(const Settings& settings);
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;

  /// Delivery within the process: the option's, or else the file's.
  [[nodiscard]] IntraProcess intra_process() const noexcept { return intra_process_; }
  /// Whether the file of profiles has a default profile, or settings of the library: else it changes nothing.
  [[nodiscard]] static bool profiles_change_something();

 private:
  IntraProcess intra_process_;
};

/// The vendor's word for it in XML.
const char* name_of(IntraProcess intra_process) noexcept;

}  // namespace lagometer::fastdds
