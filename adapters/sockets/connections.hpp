// SPDX-License-Identifier: Apache-2.0
// The subscribers of one publisher on sockets: matched() looks for them, publishing iterates over them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "append_list.hpp"
#include "context.hpp"
#include "rendezvous.hpp"

namespace lagometer::sockets {

/// A publisher's end towards one subscriber.
struct Connection {
  std::string name;         // of the subscriber's announcement; known names are not checked again
  Descriptor announcement;  // none if it is on another host: a failed send then shows that it is gone
  Descriptor socket;
  BufferSizes default_sizes;
  std::atomic<bool> live{true};

  /// Marks the connection dead if its subscriber is dead.
  void look_after() noexcept {
    if (announcement.valid() && !rendezvous::locked_by_other(announcement.get()))
      live.store(false, std::memory_order_relaxed);
  }
  /// The other end no longer exists.
  void refused() noexcept {
    if (!announcement.valid()) live.store(false, std::memory_order_relaxed);
  }
};

/// `Kind` is Connection, or a derived class with more members.
template <typename Kind>
class Connections {
 public:
  static constexpr uint32_t most = 256;

  Connections(Context& context, const floor::Endpoint& endpoint) : context_(context), endpoint_(endpoint) {}

  /// Looks for subscribers and counts the live ones. open(connection, facts) creates the socket to a new one; it
  /// returns false if that left meanwhile.
  template <typename Open>
  void look(lagometer_matched& out, Open&& open) {
    const std::scoped_lock lock(mutex_);
    const auto known = [this](const std::string& name) { return knows(name); };
    for (auto& found : context_.look_for(endpoint_.topic, known)) add(found, open);
    out.count = 0;
    out.exact = 0;
    for (uint32_t index = 0; index < list_.size(); ++index) {
      list_[index].look_after();
      if (list_[index].live.load(std::memory_order_relaxed)) ++out.count;
    }
  }

  /// Calls send(connection) for each live one. If one returns false, the message counts as rejected.
  template <typename Send>
  lagometer_status send_to_all(Send&& send) {
    bool refused = false;
    const uint32_t count = list_.size();
    for (uint32_t index = 0; index < count; ++index) {
      Kind& connection = list_[index];
      if (connection.live.load(std::memory_order_relaxed)) refused = !send(connection) || refused;
    }
    if (!refused) return LAGOMETER_OK;
    rejected_.fetch_add(1, std::memory_order_relaxed);
    return LAGOMETER_REJECTED;
  }

  void counters(lagometer_counters& out) const noexcept {
    out.present = LAGOMETER_COUNTER_REJECTED;
    out.rejected = rejected_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] std::string describe() const {
    if (list_.size() == 0) return R"({"settings":{},"paste":[]})";  // no subscriber yet, so no socket
    return describe_socket(buffer_sizes(list_[0].socket.get()), list_[0].default_sizes, false);
  }

 private:
  [[nodiscard]] bool knows(const std::string& name) const {
    for (uint32_t index = 0; index < list_.size(); ++index) {
      if (list_[index].name == name) return true;
    }
    return std::find(refused_names_.begin(), refused_names_.end(), name) != refused_names_.end();
  }

  template <typename Open>
  void add(rendezvous::Found& found, Open& open) {
    std::string why = endpoint_.mismatch(found.facts);
    if (list_.full()) why = "this publisher has had " + std::to_string(most) + " subscribers, the most there can be";
    if (!why.empty()) {
      refused_names_.push_back(found.name);
      return endpoint_.refuse(why, refused_names_.size());
    }
    auto connection = std::make_unique<Kind>();
    if (!open(*connection, found.facts)) return;
    connection->name = found.name;
    connection->announcement = std::move(found.file);
    list_.append(std::move(connection));
  }

  Context& context_;
  const floor::Endpoint& endpoint_;
  AppendList<Kind, most> list_;
  std::mutex mutex_;  // between threads that call matched(); the message path does not use it
  std::vector<std::string> refused_names_;
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::sockets
