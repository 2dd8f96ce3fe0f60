// SPDX-License-Identifier: Apache-2.0
// One subscriber, or the receiving end of a service: roscpp calls back with a message, which waits here until it is
// taken, and is kept until it is released.
#pragma once

#include <ros/subscriber.h>

#include <boost/shared_ptr.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "arrivals.hpp"
#include "exchange.hpp"
#include "layer_stamps.hpp"
#include "objects.hpp"

namespace lagometer::ros1 {

class ServiceEnd;

class Reader {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  /// An end of a service.
  Reader(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service);
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader();
  void attach(std::shared_ptr<Queue> waited);
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_TAKE | LAGOMETER_STAMPS_DESERIALISE;
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  void enable();
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const noexcept { out.present = 0; }
  [[nodiscard]] nlohmann::json describe() const;
  /// [thread: that of its callback queue]
  void arrived(Arrived&& arrived);

 private:
  template <typename Message>
  void subscribe();
  /// Moves the oldest waiting message into the sample; returns false if there is none, or too many are taken and not
  /// released.
  bool lend(lagometer_sample& sample) noexcept;
  void show_stamps(lagometer_sample& sample, const lagometer_stamp& entered,
                   const lagometer_stamp& left) const noexcept;
  static void show(const Arrived& arrived, lagometer_sample& sample) noexcept;

  Node& node_;
  Endpoint endpoint_;
  uint32_t dispatch_;
  void* user_;
  lagometer_data_function on_data_;
  uint64_t stamped_layers_ = 0;
  std::shared_ptr<Queue> queue_;  // of the node's spinner, of the waitset or, if polled, only of this reader
  Arrivals<Arrived> arrivals_;    // a spinner's thread delivers, another one may take
  ros::Subscriber subscriber_;
  std::shared_ptr<ServiceEnd> service_;
};

}  // namespace lagometer::ros1
