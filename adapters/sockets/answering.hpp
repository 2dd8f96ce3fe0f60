// SPDX-License-Identifier: Apache-2.0
// Has the context's thread answer publishers on other hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "directory.hpp"
#include "epoll_set.hpp"

namespace lagometer::sockets {

class Answering final : public Source {
 public:
  /// set: the one whose thread answers.
  Answering(const std::string& link, nlohmann::json place, std::shared_ptr<EpollSet> set)
      : directory_(link, std::move(place), rendezvous::Unasked::silent),
        set_(std::move(set)),
        slot_(set_->join(*this)) {
    for (const int socket : directory_.descriptors()) set_->watch(socket, slot_, 0);
  }
  Answering(const Answering&) = delete;
  Answering& operator=(const Answering&) = delete;
  ~Answering() override {
    for (const int socket : directory_.descriptors()) set_->forget(socket);
    set_->leave(slot_);
  }

  uint32_t add(const std::string& topic, const nlohmann::json& facts) { return directory_.add(topic, facts); }
  void remove(uint32_t entry) noexcept { directory_.remove(entry); }

  /// Asks, and returns those that have answered so far. Ask again for the others. [thread: any]
  std::vector<rendezvous::Found> look_for(const std::string& topic) {
    directory_.ask(topic);
    return directory_.present(topic);
  }

  void readable(uint32_t) noexcept override {
    static_cast<void>(guarded([this] {
      directory_.serve();
      return LAGOMETER_OK;
    }));
  }
  void deliver(int64_t, uint32_t) noexcept override {}
  [[nodiscard]] bool buffered() const noexcept override { return false; }

 private:
  rendezvous::Directory directory_;
  std::shared_ptr<EpollSet> set_;
  uint32_t slot_;
};

}  // namespace lagometer::sockets
