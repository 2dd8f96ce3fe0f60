// SPDX-License-Identifier: Apache-2.0
// The subscribers that one publisher has found and connected to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meeting.hpp"

namespace lagometer::brokerless {

/// `Link` is the library's handle of a connection, which ends it.
template <typename Link>
class Subscribers {
 public:
  Subscribers(const Meeting& meeting, const Endpoint& endpoint) : meeting_(meeting), endpoint_(endpoint) {}

  /// Looks for new subscribers and for those that are gone: connect(address) returns an optional Link, empty if nobody
  /// listens there any more; disconnect(link) ends one. [thread: any]
  template <typename Connect, typename Disconnect>
  void look(Connect&& connect, Disconnect&& disconnect) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(connected_, [&](Connected& each) {
      if (meeting_.present(endpoint_.topic, each.name, each.announcement)) return false;
      disconnect(each.link);
      return true;
    });
    const auto known = [this](const std::string& name) { return knows(name); };
    for (auto& found : meeting_.subscribers(endpoint_.topic, known)) {
      std::string why = endpoint_.mismatch(found.facts);
      if (why.empty()) why = meeting_.unreachable(found.facts);
      if (!why.empty()) {
        refused_names_.push_back(found.name);
        endpoint_.refuse(why, refused_names_.size());
        continue;
      }
      std::optional<Link> link = connect(found.facts.at("address").template get<std::string>());
      if (link) connected_.push_back({std::move(found.name), std::move(found.file), std::move(*link)});
    }
  }

  /// Whether one of those that were found is still there. [thread: any]
  [[nodiscard]] bool anyone() {
    const std::scoped_lock lock(mutex_);
    return std::any_of(connected_.begin(), connected_.end(), [this](const Connected& each) {
      return meeting_.present(endpoint_.topic, each.name, each.announcement);
    });
  }

 private:
  struct Connected {
    std::string name;  // of the announcement; known names are not checked again
    Descriptor announcement;
    Link link;
  };

  [[nodiscard]] bool knows(const std::string& name) const {
    const auto same = [&name](const Connected& each) { return each.name == name; };
    return std::any_of(connected_.begin(), connected_.end(), same) ||
           std::find(refused_names_.begin(), refused_names_.end(), name) != refused_names_.end();
  }

  const Meeting& meeting_;
  const Endpoint& endpoint_;
  std::mutex mutex_;
  std::vector<Connected> connected_;
  std::vector<std::string> refused_names_;
};

}  // namespace lagometer::brokerless
