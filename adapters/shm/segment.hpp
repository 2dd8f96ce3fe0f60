// SPDX-License-Identifier: Apache-2.0
// Memory shared by processes: a file on the trial's tmpfs, mapped by its creator and by its peers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "descriptor.hpp"

namespace lagometer::shm {

/// A mapped file. Peers within one process get the same mapping, so that they share it as threads do.
class Segment {
 public:
  /// Creates the file with all its pages. Errors: NO_RESOURCE if the tmpfs or the memory is too small.
  static std::shared_ptr<Segment> make(const std::string& path, uint64_t bytes);
  /// Maps a peer's file. Errors: FAILED if it is gone or smaller than `bytes_min`.
  static std::shared_ptr<Segment> open(const std::string& path, uint64_t bytes_min);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
  ~Segment();

  [[nodiscard]] uint8_t* data() const noexcept { return data_; }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// False once its creator's process is dead.
  [[nodiscard]] bool maker_alive() const noexcept;
  /// Removes the name: processes that mapped it keep it, nobody else can find it. Called by its creator.
  void unlink() const noexcept;

 private:
  Segment(std::string path, Descriptor file, uint64_t bytes, bool made_here);

  std::string path_;
  Descriptor file_;
  uint64_t bytes_;
  bool made_here_;
  uint8_t* data_ = nullptr;
};

}  // namespace lagometer::shm
