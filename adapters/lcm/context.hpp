// SPDX-License-Identifier: Apache-2.0
// Context, node, type and waitset, and the thread that calls listeners.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "endpoint.hpp"
#include "instance.hpp"
#include "poll_set.hpp"

namespace lagometer::lcm {

inline constexpr brokerless::Abilities abilities{.adapter = "lcm",
                                                 .transport = "udp",
                                                 .reliable = false,
                                                 .keep_all = false,
                                                 .payload_bytes_max = LCM_MAX_MESSAGE_SIZE};

/// The options of a plan, checked. Errors: an option is unknown or out of bounds.
struct Choices {
  explicit Choices(std::string_view text);
  std::optional<int> receive_buffer_bytes;
};

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();
  void enable() noexcept {}

  /// What its writers publish through, and what calls its listeners.
  [[nodiscard]] const std::shared_ptr<Instance>& instance() const noexcept { return instance_; }
  /// Starts, once, the thread that calls listeners. Needs a subscription.
  void serve_listeners();
  [[nodiscard]] std::shared_ptr<Instance> new_instance() const { return std::make_shared<Instance>(url_); }
  [[nodiscard]] std::string describe() const;

 private:
  void serve() noexcept;

  std::string name_;
  std::string url_;
  std::shared_ptr<Instance> instance_;
  std::mutex start_mutex_;
  brokerless::PollSet set_;
  std::thread thread_;
};

using Node = PlainNode<Context>;
using Type = brokerless::Type<Context, abilities>;

class Reader;

/// Its readers share an instance; the thread that waits here and takes handles it.
class Waitset {
 public:
  explicit Waitset(Context& context) : instance_(context.new_instance()) {}
  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns);
  void trigger() noexcept { set_.trigger(); }

 private:
  std::shared_ptr<Instance> instance_;
  brokerless::PollSet set_;
  bool watches_ = false;  // since the first wait: before a subscription there is no descriptor
  std::vector<Reader*> readers_;
};

/// Topics are LCM's channels. Errors: the name is too long for LCM.
std::string to_channel(const std::string& topic);

}  // namespace lagometer::lcm
