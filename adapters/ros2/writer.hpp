// SPDX-License-Identifier: Apache-2.0
// One publisher.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "messages.hpp"
#include "missed.hpp"
#include "objects.hpp"

namespace lagometer::ros2 {

class ServiceEnd;

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  /// For a client or a server.
  Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
  /// Servers: the next message goes to the sender of this request. Errors: it was already answered.
  void answer(const lagometer_sample& request);
  void enable();
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message);
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const;

  /// A publisher of one message type, or what a client or a server sends through. It owns the message between borrow
  /// and publish, one at a time.
  class Outlet {
   public:
    virtual ~Outlet() = default;
    virtual Regions borrow(uint64_t bytes) = 0;
    virtual void publish() = 0;
    virtual void discard() = 0;
    virtual void answer(const rmw_request_id_t& request);
    virtual void matched(lagometer_matched& out) const = 0;
    virtual void counters(lagometer_counters&) const {}

   protected:
    Outlet() = default;
    Outlet(const Outlet&) = default;
    Outlet& operator=(const Outlet&) = default;
  };

 private:
  Endpoint endpoint_;
  Missed missed_;
  std::shared_ptr<ServiceEnd> service_;  // null: a topic
  std::unique_ptr<Outlet> outlet_;
};

}  // namespace lagometer::ros2
