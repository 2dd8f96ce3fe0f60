// SPDX-License-Identifier: Apache-2.0
// How publishers and subscribers on several hosts find each other: a publisher that looks for subscribers asks on the
// link, by multicast, and the subscribers of its topic answer. Nothing is sent unless somebody looks, so nothing is
// sent while a trial measures.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "epoll_set.hpp"
#include "rendezvous.hpp"

namespace lagometer::sockets {

class Directory final : public Source {
 public:
  /// link: this host's address; place: what questions and answers must have in common (trial, adapter, domain); set:
  /// the one whose thread answers.
  Directory(const std::string& link, nlohmann::json place, std::shared_ptr<EpollSet> set);
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() override;

  /// Answers for a subscriber from now on, until `remove` is called with the returned number. [thread: any]
  uint32_t add(const std::string& topic, const nlohmann::json& facts);
  void remove(uint32_t entry) noexcept;

  /// Asks, and returns those that have answered so far. Ask again for the others. [thread: any]
  std::vector<rendezvous::Found> look_for(const std::string& topic);

  void readable(uint32_t tag) noexcept override;
  void deliver(int64_t, uint32_t) noexcept override {}
  [[nodiscard]] bool buffered() const noexcept override { return false; }

 private:
  struct Entry {
    std::string topic;
    nlohmann::json facts;
  };

  void answer(const nlohmann::json& question, const sockaddr_in& asker);
  void hear_answers();

  nlohmann::json place_;
  std::shared_ptr<EpollSet> set_;
  Descriptor questions_;  // receives everybody's questions on the link
  Descriptor own_;        // asks, answers, and receives answers
  uint32_t slot_ = 0;
  std::mutex mutex_;
  std::map<uint32_t, Entry> entries_;
  uint32_t last_entry_ = 0;
  std::map<std::string, std::map<std::string, nlohmann::json>> heard_;  // by topic and address
};

}  // namespace lagometer::sockets
