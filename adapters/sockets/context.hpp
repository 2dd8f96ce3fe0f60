// SPDX-License-Identifier: Apache-2.0
// Context, node and type of the socket adapters, and the thread that accepts connections and serves listeners.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "answering.hpp"
#include "epoll_set.hpp"
#include "floor.hpp"
#include "internet.hpp"
#include "rendezvous.hpp"

namespace lagometer::sockets {

/// What this library's transport supports; each adapter defines its own.
extern const floor::Abilities abilities;

/// A socket's buffers, as the kernel reports them: the requested size is doubled, and clamped without the right
/// capability.
struct BufferSizes {
  int send_bytes = 0;
  int receive_bytes = 0;
};

/// Publishers find a subscriber for as long as this lives.
using Announced = std::shared_ptr<void>;

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  void enable() noexcept {}

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] std::filesystem::path topic_folder(std::string_view topic) const;
  /// The local end of this host's sockets: on the link to other hosts, or on the loopback; the kernel chooses the port.
  [[nodiscard]] sockaddr_in own_end() const { return internet::end_at(link_.empty() ? internet::loopback : link_, 0); }

  Announced announce(const std::string& topic, const nlohmann::json& facts);
  /// The subscribers of a topic whose name `known` does not accept.
  template <typename Known>
  std::vector<rendezvous::Found> look_for(const std::string& topic, Known&& known) {
    if (!answering_) return rendezvous::scan(topic_folder(topic), known);
    std::vector<rendezvous::Found> result = answering_->look_for(topic);
    std::erase_if(result, [&known](const rendezvous::Found& found) { return known(found.name); });
    return result;
  }

  /// Gives a new socket this profile's buffers; returns the kernel's default sizes.
  BufferSizes size_buffers(int socket) const;

  /// What the context's thread waits on; the first call starts the thread.
  std::shared_ptr<EpollSet> served_set();

 private:
  void serve() noexcept;

  std::string name_;
  std::filesystem::path folder_;
  std::string link_;      // this host's address; empty: there is no other host
  int buffer_bytes_ = 0;  // 0: the kernel's default
  std::mutex start_mutex_;
  std::shared_ptr<EpollSet> set_;
  std::thread thread_;
  std::shared_ptr<Answering> answering_;  // if there are other hosts
};

using Node = PlainNode<Context>;
using Type = floor::Type<Context, abilities>;

BufferSizes buffer_sizes(int socket) noexcept;
/// The JSON of describe() for an endpoint with such a socket.
std::string describe_socket(BufferSizes now, BufferSizes vendor_default, bool is_reader);
/// The JSON of probe().
std::string probe_socket();

}  // namespace lagometer::sockets
