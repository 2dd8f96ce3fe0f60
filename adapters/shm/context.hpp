// SPDX-License-Identifier: Apache-2.0
// Context, node and type of the shared-memory adapter, and the thread that serves its listeners.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "callback_slots.hpp"
#include "floor.hpp"
#include "layout.hpp"
#include "segment.hpp"

namespace lagometer::shm {

inline constexpr floor::Abilities abilities{.adapter = "shm",
                                            .transport = "shared-memory",
                                            .reliable = true,
                                            .keep_all = true,
                                            .payload_bytes_max = 1ULL << 30};

class Reader;
using Readers = CallbackSlots<Reader, 1024>;

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  void enable() noexcept {}

  /// A new file of this adapter in this domain.
  [[nodiscard]] std::string new_path(std::string_view prefix) const;
  [[nodiscard]] std::filesystem::path topic_folder(std::string_view topic) const;
  /// How many messages a queue keeps with this quality of service.
  [[nodiscard]] uint32_t queue_limit(const floor::Endpoint& endpoint) const noexcept;

  /// The bell at which the listener thread sleeps; the first call creates both.
  std::shared_ptr<Segment> listener_bell();
  [[nodiscard]] const std::shared_ptr<Readers>& listeners() const noexcept { return listeners_; }

 private:
  void serve_listeners() noexcept;

  std::string name_;
  std::filesystem::path folder_;
  uint32_t keep_all_messages_;
  std::shared_ptr<Readers> listeners_ = std::make_shared<Readers>();
  std::mutex start_mutex_;
  std::shared_ptr<Segment> bell_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

using Node = PlainNode<Context>;
using Type = floor::Type<Context, abilities>;

}  // namespace lagometer::shm
