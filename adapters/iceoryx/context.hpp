// SPDX-License-Identifier: Apache-2.0
// Context, node and type of the iceoryx adapter. A process has one runtime, registered at RouDi from the first context
// until the process ends; contexts differ in the instance under which they offer their services.
#pragma once

#include <iceoryx_posh/capro/service_description.hpp>
#include <iceoryx_posh/popo/listener.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "floor.hpp"

namespace lagometer::iceoryx {

inline constexpr floor::Abilities abilities{.adapter = "iceoryx",
                                            .transport = "shared-memory",
                                            .reliable = true,
                                            .keep_all = true,
                                            .payload_bytes_max = 64ULL << 20};

class Context {
 public:
  /// Registers the process at RouDi. Throws lagometer::Error if RouDi is not running.
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}

  /// A topic's name in iceoryx: service (the type), instance (the domain), event (the topic).
  [[nodiscard]] iox::capro::ServiceDescription service(const PayloadType& type, const std::string& topic) const;
  /// iceoryx's own thread for callbacks, started on first use.
  iox::popo::Listener& listener();

 private:
  std::string instance_;
  std::mutex start_mutex_;
  std::unique_ptr<iox::popo::Listener> listener_;
};

using Node = PlainNode<Context>;
using Type = floor::Type<Context, abilities>;

/// The name of the last error that iceoryx reported on this thread; null if there was none since forget_error().
const char* last_error() noexcept;
void forget_error() noexcept;

}  // namespace lagometer::iceoryx
