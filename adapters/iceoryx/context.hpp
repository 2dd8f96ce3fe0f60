// SPDX-License-Identifier: Apache-2.0
// Context, node and type of the iceoryx adapter. A process has one runtime, registered at RouDi when the first context
// is made and until the process ends; contexts differ in the instance that their services are offered under.
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
  /// Registers the process at RouDi. Throws lagometer::Error if RouDi does not run.
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}

  /// What a topic is called in iceoryx: service (the type), instance (the domain), event (the topic).
  [[nodiscard]] iox::capro::ServiceDescription service(const PayloadType& type, const std::string& topic) const;
  /// iceoryx's own thread for callbacks, started when first asked for.
  iox::popo::Listener& listener();

 private:
  std::string instance_;
  std::mutex start_mutex_;
  std::unique_ptr<iox::popo::Listener> listener_;
};

using Node = PlainNode<Context>;
using Type = floor::Type<Context, abilities>;

/// The last error that iceoryx reported on this thread, by its name; null if none since forget_error().
const char* last_error() noexcept;
void forget_error() noexcept;

}  // namespace lagometer::iceoryx
