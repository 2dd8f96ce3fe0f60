// SPDX-License-Identifier: Apache-2.0
// How the endpoints of the floor adapters find each other: through files. A subscriber announces itself with a file
// <runtime directory>/<domain>/<adapter>/t-<escaped topic>/r-<id> that contains its address and its requested settings;
// publishers scan that folder. The file stays locked while its creator lives. That distinguishes live files from those
// of a killed process, even across process namespaces.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "binding.hpp"
#include "descriptor.hpp"

namespace lagometer::rendezvous {

/// A name that no other endpoint in the same folder has, in any process or process namespace.
inline std::string unique_name(std::string_view prefix) {
  static std::atomic<uint32_t> counter{0};
  char text[64];
  std::snprintf(text, sizeof text, "%.*s-%x-%x-%llx", static_cast<int>(prefix.size()), prefix.data(),
                static_cast<unsigned>(getpid()), counter.fetch_add(1, std::memory_order_relaxed),
                static_cast<unsigned long long>(now_ns()));
  return text;
}

/// The folder of one adapter in one domain; created if it does not exist.
inline std::filesystem::path adapter_folder(std::string_view runtime_directory, uint32_t domain,
                                            std::string_view adapter) {
  if (runtime_directory.empty())
    throw Error(LAGOMETER_INVALID, "no runtime directory given: it holds the endpoints' addresses");
  auto folder = std::filesystem::path(runtime_directory) / std::to_string(domain) / adapter;
  std::filesystem::create_directories(folder);
  return folder;
}

/// The folder of one topic. Every byte that is not a letter, a digit, '-' or '_' becomes %XX.
inline std::filesystem::path topic_folder(const std::filesystem::path& folder, std::string_view topic) {
  std::string name = "t-";
  for (const char c : topic) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
    name += plain ? std::string(1, c) : std::string(escaped);
  }
  if (name.size() > 255) throw Error(LAGOMETER_INVALID, "topic name too long for a file name: " + std::string(topic));
  return folder / name;
}

/// Locks a file for as long as this open file lives. The kernel releases an open-file-description lock when its process
/// dies. The lock conflicts with every other open of the file, even in the same process.
inline void lock_while_alive(int file, const std::string& path) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file, F_OFD_SETLK, &lock) != 0) throw_system_error("locking " + path);
}

/// Whether another open file holds the lock: its creator is alive and has not released it.
inline bool locked_by_other(int file) noexcept {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// The file of one subscriber, removed with this object.
class Announcement {
 public:
  Announcement(const std::filesystem::path& folder, const nlohmann::json& facts) : path_(folder / unique_name("r")) {
    std::filesystem::create_directories(folder);
    // Readers of the folder see the file either complete and locked, or not at all.
    const auto draft = folder / path_.filename().string().insert(0, 1, '.');
    file_ = Descriptor(open(draft.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    if (!file_.valid()) throw_system_error("creating " + draft.string());
    lock_while_alive(file_.get(), draft.string());
    const std::string text = facts.dump();
    if (write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        rename(draft.c_str(), path_.c_str()) != 0) {
      const int error = errno;
      unlink(draft.c_str());
      errno = error;
      throw_system_error("writing " + path_.string());
    }
  }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;
  ~Announcement() { unlink(path_.c_str()); }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// One subscriber found by a scan. `file` stays open: locked_by_other(file) tells later whether it is still alive.
struct Found {
  std::string name;
  nlohmann::json facts;
  Descriptor file;
};

/// The live subscribers in a topic's folder whose names `known` does not accept. Removes the files of dead ones.
template <typename Known>
std::vector<Found> scan(const std::filesystem::path& folder, Known&& known) {
  std::vector<Found> result;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    Found found{entry.path().filename().string(), {}, {}};
    if (found.name.starts_with('.') || known(found.name)) continue;
    found.file = Descriptor(open(entry.path().c_str(), O_RDWR | O_CLOEXEC));
    if (!found.file.valid()) continue;  // removed since the folder was read
    if (!locked_by_other(found.file.get())) {
      unlink(entry.path().c_str());  // names are never reused, so this can't hit another's file
      continue;
    }
    std::string text(4096, '\0');
    const ssize_t size = pread(found.file.get(), text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<size_t>(size) : 0);
    found.facts = nlohmann::json::parse(text);
    result.push_back(std::move(found));
  }
  return result;
}

}  // namespace lagometer::rendezvous
