// SPDX-License-Identifier: Apache-2.0
// A file descriptor that closes itself, and system errors as lagometer::Error.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "binding.hpp"

namespace lagometer {

class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(); }

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] bool valid() const noexcept { return number_ >= 0; }
  void reset() noexcept {
    if (number_ >= 0) close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

/// Throws the error of the system call that just failed. `what` names the call's object: "opening /dev/shm/x".
[[noreturn]] inline void throw_system_error(const std::string& what) {
  const int error = errno;
  const bool resource = error == ENOSPC || error == ENOMEM || error == EMFILE || error == ENFILE || error == EAGAIN ||
                        error == EADDRNOTAVAIL || error == ENOBUFS;
  throw Error(resource ? LAGOMETER_NO_RESOURCE : LAGOMETER_FAILED,
              what + ": " + std::generic_category().message(error));
}

}  // namespace lagometer
