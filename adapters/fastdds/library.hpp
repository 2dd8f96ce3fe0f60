// SPDX-License-Identifier: Apache-2.0
// What Fast DDS has once per process, whoever made the participants in it.
#pragma once

#include "settings.hpp"

namespace lagometer::fastdds {

/// A participant's share in the library. While anybody has one, delivery within the process stays as the first wanted
/// it; when the last is given back, the library's log thread ends.
class LibraryUse {
 public:
  /// Throws Error(LAGOMETER_INVALID) if participants of this process have another delivery within the process.
  explicit LibraryUse(IntraProcess wanted);
  ~LibraryUse();
  LibraryUse(const LibraryUse&) = delete;
  LibraryUse& operator=(const LibraryUse&) = delete;
};

/// The vendor's word for it in XML.
const char* name_of(IntraProcess intra_process) noexcept;

}  // namespace lagometer::fastdds
