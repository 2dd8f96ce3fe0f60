// SPDX-License-Identifier: Apache-2.0
// One publisher, or the sending end of a service. Messages are objects of roscpp's own types, created once and reused
// when nobody holds them.
#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "exchange.hpp"
#include "layer_stamps.hpp"
#include "objects.hpp"

namespace lagometer::ros1 {

class ServiceEnd;

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
  /// Servers: the next message answers this request. Errors: it was already answered.
  void answer(const lagometer_sample& request);
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_SERIALISE | LAGOMETER_STAMPS_WRITE;
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  void enable();
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message&) noexcept {}
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const noexcept;
  [[nodiscard]] nlohmann::json describe() const;

  /// A publisher of one message type.
  class Outlet {
   public:
    virtual ~Outlet() = default;
    virtual lagometer_region borrow(uint64_t bytes) = 0;
    /// Returns false if there is no room for it.
    virtual bool publish() = 0;
    virtual void matched(lagometer_matched& out) const = 0;
    /// The note of the message that was borrowed last; a service has none.
    virtual Note* note() { return nullptr; }
    /// The next published message answers this request.
    virtual void answer(const Arrived& /*request*/) {
      throw Error(LAGOMETER_INVALID, "ros1: only a server's writer can answer");
    }

   protected:
    Outlet() = default;
    Outlet(const Outlet&) = default;
    Outlet& operator=(const Outlet&) = default;
  };

 private:
  bool publish_stamped(lagometer_message& message);

  Endpoint endpoint_;
  uint64_t stamped_layers_ = 0;
  std::shared_ptr<ServiceEnd> service_;
  std::unique_ptr<Outlet> outlet_;
  std::atomic<uint64_t> rejected_{0};
};

}  // namespace lagometer::ros1
