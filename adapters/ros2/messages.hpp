// SPDX-License-Identifier: Apache-2.0
// The ROS 2 messages behind lagometer's payload types: how to prepare one for a payload of a given size, and where its
// bytes are. Each is filled as an application would; common/ros2_messages.hpp has the fields next to the payload.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sensor_msgs/msg/image.hpp>
#include <sensor_msgs/msg/imu.hpp>
#include <sensor_msgs/msg/point_cloud2.hpp>
#include <std_msgs/msg/string.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>
#include <string>

#include "binding.hpp"
#include "ros2_messages.hpp"
#ifdef LAGOMETER_ROS2_INTERFACES
#include <lagometer_interfaces/msg/fixed1024.hpp>
#include <lagometer_interfaces/msg/fixed1048576.hpp>
#include <lagometer_interfaces/msg/fixed64.hpp>
#include <lagometer_interfaces/msg/fixed65536.hpp>
#endif

namespace lagometer::ros2 {

using Bytes = std_msgs::msg::UInt8MultiArray;
using Text = std_msgs::msg::String;
using Image = sensor_msgs::msg::Image;
using Imu = sensor_msgs::msg::Imu;
using PointCloud = sensor_msgs::msg::PointCloud2;

/// The regions of a payload (adapter.h).
struct Regions {
  lagometer_region region[LAGOMETER_REGIONS_MAX];
  uint32_t count;
};

inline lagometer_region region_of(void* data, uint64_t bytes) noexcept { return {static_cast<uint8_t*>(data), bytes}; }

/// Resizes a message for its payload; allocates nothing if the size is the same again.
template <typename Message>
void prepare(Message&, uint64_t) {}  // fixed size
inline void prepare(Bytes& message, uint64_t bytes) { message.data.resize(bytes); }
inline void prepare(Text& message, uint64_t bytes) { message.data.resize(bytes, kFiller); }
inline void prepare(Image& message, uint64_t bytes) {
  if (message.data.size() == bytes && bytes != 0) return;
  const ImageSize size = image_size(bytes);
  message.header.frame_id = kFrameId;
  message.encoding = kEncoding;
  message.height = size.height;
  message.width = size.width;
  message.step = size.width;
  message.data.resize(bytes);
}
inline void prepare(PointCloud& message, uint64_t bytes) {
  if (message.data.size() == bytes && bytes != 0) return;
  message.header.frame_id = kFrameId;
  message.fields.clear();
  for (const char* name : kPointFields) {
    sensor_msgs::msg::PointField field;
    field.name = name;
    field.offset = static_cast<uint32_t>(message.fields.size()) * kPointFieldBytes;
    field.datatype = kPointFieldFloat32;
    field.count = 1;
    message.fields.push_back(field);
  }
  message.height = 1;
  message.width = static_cast<uint32_t>(bytes / LAGOMETER_POINT_BYTES);
  message.point_step = LAGOMETER_POINT_BYTES;
  message.row_step = static_cast<uint32_t>(bytes);
  message.is_dense = true;
  message.data.resize(bytes);
}
inline void prepare(Imu& message, uint64_t) {
  if (message.header.frame_id.size() == LAGOMETER_TEXT_ENVELOPE_BYTES) return;
  message.header.frame_id.assign(LAGOMETER_TEXT_ENVELOPE_BYTES, kFiller);
  message.orientation.w = 1.0;  // no rotation, at rest, covariances unknown
}

/// Returns the payload. Nobody writes to that of a received message.
template <typename Message>
Regions shown(const Message& message) noexcept {
  using Data = std::decay_t<decltype(message.data)>;
  auto& data = const_cast<Data&>(message.data);
  return {{region_of(data.data(), data.size())}, 1};
}
/// The 37 numbers of an Imu are contiguous in its struct, from the orientation to the last covariance.
inline Regions shown(const Imu& message) noexcept {
  constexpr uint64_t kNumberBytes = LAGOMETER_IMU_BYTES - LAGOMETER_TEXT_ENVELOPE_BYTES;
  static_assert(sizeof(Imu::orientation) + sizeof(Imu::orientation_covariance) + sizeof(Imu::angular_velocity) +
                    sizeof(Imu::angular_velocity_covariance) + sizeof(Imu::linear_acceleration) +
                    sizeof(Imu::linear_acceleration_covariance) ==
                kNumberBytes);
  auto& text = const_cast<std::string&>(message.header.frame_id);
  auto* const numbers = const_cast<double*>(&message.orientation.x);
  return {{region_of(text.data(), text.size()), region_of(numbers, kNumberBytes)}, 2};
}

/// Calls `function` with an empty message of the type for this payload type and size; returns its result. Throws
/// lagometer::Error if there is no such payload type or size.
template <typename Function>
auto with_message_type(std::string_view payload_type, uint64_t max_bytes, Function&& function) {
  if (payload_type == "bytes") return function(Bytes{});
  if (payload_type == "string") return function(Text{});
  if (payload_type == "Image") return function(Image{});
  if (payload_type == "PointCloud2") return function(PointCloud{});
  if (payload_type == "Imu") return function(Imu{});
#ifdef LAGOMETER_ROS2_INTERFACES
  if (payload_type == "fixed" && max_bytes == 64) return function(lagometer_interfaces::msg::Fixed64{});
  if (payload_type == "fixed" && max_bytes == 1024) return function(lagometer_interfaces::msg::Fixed1024{});
  if (payload_type == "fixed" && max_bytes == 65536) return function(lagometer_interfaces::msg::Fixed65536{});
  if (payload_type == "fixed" && max_bytes == 1048576) return function(lagometer_interfaces::msg::Fixed1048576{});
#endif
  throw Error(LAGOMETER_UNSUPPORTED, "ros2: no type '" + std::string(payload_type) + "' of " +
                                         std::to_string(max_bytes) + " bytes: see adapters/ros2/README.md");
}

}  // namespace lagometer::ros2
