// SPDX-License-Identifier: Apache-2.0
// Publishers look for subscribers; a subscriber that comes after they have stopped looking knocks. Each context that
// publishes has one thread, which sleeps until somebody knocks. Between hosts each context has one, which also listens
// to the link.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "poll_set.hpp"

namespace lagometer::brokerless {

class Door {
 public:
  /// `path`: of its socket, within the length limit of a socket's name. `thread_name`: for lists of threads.
  /// `directory`: null if there is no other host.
  Door(std::string path, std::string thread_name, std::shared_ptr<rendezvous::Directory> directory)
      : path_(std::move(path)), thread_name_(std::move(thread_name)), directory_(std::move(directory)) {
    if (directory_) open();
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() {
    if (!thread_.joinable()) return;
    set_.trigger();
    thread_.join();
    unlink(path_.c_str());
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Calls `look` whenever a subscriber has come or gone, on the door's thread, until leave(). The first call starts
  /// the thread.
  void answer(const void* publisher, std::function<void()> look) {
    const std::scoped_lock lock(mutex_);
    if (!thread_.joinable()) open();
    publishers_.emplace_back(publisher, std::move(look));
  }

  /// Returns when the publisher's `look` is not running and will not run.
  void leave(const void* publisher) noexcept {
    const std::scoped_lock lock(mutex_);
    std::erase_if(publishers_, [publisher](const auto& each) { return each.first == publisher; });
  }

  /// Knocks at somebody else's door. If nobody is there any more, nothing happens.
  static void knock(const std::string& path) {
    const Descriptor own = make_socket();
    const sockaddr_un address = to_address(path);
    // A full queue holds knocks that nobody has handled yet: one is as good as many.
    sendto(own.get(), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL, to_plain(address), sizeof address);
  }

 private:
  static Descriptor make_socket() {
    Descriptor made(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!made.valid()) throw_system_error("making a socket");
    return made;
  }
  static sockaddr_un to_address(const std::string& path) noexcept {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  static const sockaddr* to_plain(const sockaddr_un& address) noexcept {
    return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: the system's interface
  }

  void open() {
    socket_ = make_socket();
    const sockaddr_un address = to_address(path_);
    if (bind(socket_.get(), to_plain(address), sizeof address) != 0) throw_system_error("binding " + path_);
    set_.watch(socket_.get());
    if (directory_) {
      for (const int heard : directory_->descriptors()) set_.watch(heard);
    }
    thread_ = std::thread([this] { serve(); });
  }

  void serve() noexcept {
    host->thread_begin(host->self, LAGOMETER_ROLE_OTHER, to_c(thread_name_));
    while (set_.wait(std::numeric_limits<int64_t>::max()) == PollSet::Woken::readable) {
      const bool knocked = anyone_knocked();
      if (!anything_heard() && !knocked) continue;
      const std::scoped_lock lock(mutex_);
      for (const auto& [publisher, look] : publishers_) {
        guarded([&look = look] {
          look();
          return LAGOMETER_OK;
        });
      }
    }
    host->thread_end(host->self);
  }

  bool anyone_knocked() noexcept {
    bool knocked = false;
    std::array<char, 1> knock{};
    while (recv(socket_.get(), knock.data(), knock.size(), MSG_DONTWAIT) >= 0) knocked = true;
    return knocked;
  }

  bool anything_heard() noexcept {
    bool changed = false;
    if (directory_) {
      guarded([this, &changed] {
        changed = directory_->serve();
        return LAGOMETER_OK;
      });
    }
    return changed;
  }

  std::string path_;
  std::string thread_name_;
  std::shared_ptr<rendezvous::Directory> directory_;
  Descriptor socket_;
  PollSet set_;
  std::mutex mutex_;  // held while the list changes, and while its publishers look
  std::vector<std::pair<const void*, std::function<void()>>> publishers_;
  std::thread thread_;
};

}  // namespace lagometer::brokerless
