// SPDX-License-Identifier: Apache-2.0
// One publisher.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "messages.hpp"
#include "missed.hpp"
#include "objects.hpp"

namespace lagometer::ros2 {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  void enable();
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message);
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const;

  /// A publisher of one message type. The message between borrow and publish is its own, one at a time.
  class Outlet {
   public:
    virtual ~Outlet() = default;
    virtual Regions borrow(uint64_t bytes) = 0;
    virtual void publish() = 0;
    virtual void discard() = 0;
    [[nodiscard]] virtual const rclcpp::PublisherBase& publisher() const = 0;

   protected:
    Outlet() = default;
    Outlet(const Outlet&) = default;
    Outlet& operator=(const Outlet&) = default;
  };

 private:
  Endpoint endpoint_;
  Missed missed_;
  std::unique_ptr<Outlet> outlet_;
};

}  // namespace lagometer::ros2
