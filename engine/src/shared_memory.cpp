// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace lagometer::supervisor {

namespace {

namespace fs = std::filesystem;

/// The files of a folder and their inodes: a name that is created again is a different file.
std::map<std::string, ino_t> files_of(const std::string& folder) {
  std::map<std::string, ino_t> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    struct stat status{};
    if (lstat(entry.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid())
      found[entry.path().filename()] = status.st_ino;
  }
  return found;
}

using File = std::pair<dev_t, ino_t>;

/// The files in `folder` that any process maps. By device and inode: in another trial's private machine the same name
/// is a different file.
std::set<File> mapped_in(const std::string& folder) {
  std::set<File> found;
  std::error_code ignored;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", ignored)) {
    std::ifstream maps(process.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(folder + "/") == std::string::npos) continue;
      std::istringstream fields(line);
      std::string skipped;
      unsigned int major_number = 0;
      unsigned int minor_number = 0;
      char colon = 0;
      ino_t inode = 0;
      fields >> skipped >> skipped >> skipped >> std::hex >> major_number >> colon >> minor_number >> std::dec >> inode;
      if (fields) found.emplace(makedev(major_number, minor_number), inode);
    }
  }
  return found;
}

/// The files that any process has open, by device and inode.
std::set<File> open_anywhere() {
  std::set<File> found;
  std::error_code ignored;
  for (const fs::directory_entry& process : fs::directory_iterator("/proc", ignored)) {
    std::error_code gone;
    for (fs::directory_iterator entry(process.path() / "fd", gone), end; entry != end; entry.increment(gone)) {
      struct stat status{};
      if (stat(entry->path().c_str(), &status) == 0) found.emplace(status.st_dev, status.st_ino);
      if (gone) break;
    }
  }
  return found;
}

bool is_among(const std::string& path, const std::set<File>& files) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0 && files.contains({status.st_dev, status.st_ino});
}

/// Whether a process holds a lock on it; this is visible even from another container, where its memory is not.
bool is_locked(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  const bool locked = flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(descriptor);
  return locked;
}

/// Whether a lock file (`x_el`) belongs to this name (`x`, `x_el`, `sem.x_mutex`).
bool is_kin(std::string_view name, std::string_view lock_file) {
  if (name.starts_with("sem.")) name.remove_prefix(4);
  return name.starts_with(lock_file.substr(0, lock_file.rfind('_')));
}

}  // namespace

SharedMemory::SharedMemory(std::string folder, std::vector<std::string> patterns, std::string directory, Use use)
    : folder_(std::move(folder)),
      patterns_(std::move(patterns)),
      directory_(std::move(directory)),
      use_(use),
      before_(files_of(folder_)) {}

SharedMemory::~SharedMemory() { remove(); }

std::vector<std::string> SharedMemory::left_behind() const {
  std::vector<std::string> found;
  for (const auto& [name, inode] : files_of(folder_)) {
    const auto known = before_.find(name);
    if (known != before_.end() && known->second == inode) continue;
    const auto matches = [&file = name](const std::string& pattern) {
      return fnmatch(pattern.c_str(), file.c_str(), 0) == 0;
    };
    if (std::any_of(patterns_.begin(), patterns_.end(), matches)) found.push_back(name);
  }
  return found;
}

std::vector<std::string> SharedMemory::remove() {
  std::vector<std::string> warnings;
  std::error_code refused;
  if (!directory_.empty()) fs::remove_all(directory_, refused);
  if (refused) warnings.push_back("can't remove " + directory_ + ": " + refused.message());
  const std::vector<std::string> left = left_behind();
  if (left.empty()) return warnings;
  const std::set<File> used = use_ == Use::kOpen ? open_anywhere() : mapped_in(folder_);
  std::vector<std::string> locked;
  for (const std::string& name : left) {
    if (use_ == Use::kMapped && is_locked(folder_ + "/" + name)) locked.push_back(name);
  }
  for (const std::string& name : left) {
    const auto speaks = [&name](const std::string& lock_file) { return is_kin(name, lock_file); };
    const std::string path = folder_ + "/" + name;
    if (is_among(path, used) || std::any_of(locked.begin(), locked.end(), speaks)) {
      warnings.push_back(path + " was made during the trial and is left alone: another program uses it");
    } else if (unlink(path.c_str()) != 0 && errno != ENOENT) {
      warnings.push_back("can't remove " + path + ": " + std::strerror(errno));
    }
  }
  return warnings;
}

}  // namespace lagometer::supervisor
