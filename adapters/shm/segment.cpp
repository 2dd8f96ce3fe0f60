// SPDX-License-Identifier: Apache-2.0
#include "segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <map>
#include <mutex>

#include "rendezvous.hpp"

namespace lagometer::shm {

namespace {

/// The segments of this process by path. Used when connections come and go, never on the message path.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Segment>> segments;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

Segment::Segment(std::string path, Descriptor file, uint64_t bytes, bool made_here)
    : path_(std::move(path)), file_(std::move(file)), bytes_(bytes), made_here_(made_here) {
  void* const address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_.get(), 0);
  if (address == MAP_FAILED) throw_system_error("mapping " + std::to_string(bytes_) + " bytes of " + path_);
  data_ = static_cast<uint8_t*>(address);
}

Segment::~Segment() {
  munmap(data_, bytes_);
  const std::scoped_lock lock(registry().mutex);
  const auto found = registry().segments.find(path_);
  if (found != registry().segments.end() && found->second.expired()) registry().segments.erase(found);
}

std::shared_ptr<Segment> Segment::make(const std::string& path, uint64_t bytes) {
  Descriptor file(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file.valid()) throw_system_error("creating " + path);
  try {
    rendezvous::lock_while_alive(file.get(), path);
    // Pages are reserved here, so a full tmpfs is an error now and not a SIGBUS in the middle of a message.
    errno = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
    if (errno != 0) throw_system_error("reserving " + std::to_string(bytes) + " bytes for " + path);
    std::shared_ptr<Segment> segment(new Segment(path, std::move(file), bytes, true));
    const std::scoped_lock lock(registry().mutex);
    registry().segments[path] = segment;
    return segment;
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

std::shared_ptr<Segment> Segment::open(const std::string& path, uint64_t bytes_min) {
  {
    const std::scoped_lock lock(registry().mutex);
    const auto found = registry().segments.find(path);
    if (found != registry().segments.end()) {
      if (auto segment = found->second.lock()) return segment;
    }
  }
  Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.valid()) throw_system_error("opening " + path);
  struct stat status{};
  if (fstat(file.get(), &status) != 0) throw_system_error("reading the size of " + path);
  const auto bytes = static_cast<uint64_t>(status.st_size);
  if (bytes < bytes_min) throw Error(LAGOMETER_FAILED, path + " has " + std::to_string(bytes) + " bytes, too few");
  std::shared_ptr<Segment> segment(new Segment(path, std::move(file), bytes, false));
  const std::scoped_lock lock(registry().mutex);
  registry().segments[path] = segment;
  return segment;
}

bool Segment::maker_alive() const noexcept { return made_here_ || rendezvous::locked_by_other(file_.get()); }

void Segment::unlink() const noexcept { ::unlink(path_.c_str()); }

}  // namespace lagometer::shm
