// SPDX-License-Identifier: Apache-2.0
// The payload types that are ROS 2 messages, as far as every DDS adapter needs them: their names on the wire, their
// sizes, and the values of the fields next to the payload, so that a ROS 2 subscriber can use them. Names are those of
// rmw: the topic /a/b is "rt/a/b", the message pkg/msg/Name is "pkg::msg::dds_::Name_".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lagometer/adapter.h"

namespace lagometer::ros2 {

enum class Message : uint8_t { string, image, imu, point_cloud };

/// The message behind a payload type; nothing for lagometer's own types.
inline std::optional<Message> message_of(std::string_view payload_type) noexcept {
  if (payload_type == "string") return Message::string;
  if (payload_type == "Image") return Message::image;
  if (payload_type == "Imu") return Message::imu;
  if (payload_type == "PointCloud2") return Message::point_cloud;
  return std::nullopt;
}

inline const char* type_name(Message message) noexcept {
  constexpr std::array<const char*, 4> kNames{"std_msgs::msg::dds_::String_", "sensor_msgs::msg::dds_::Image_",
                                              "sensor_msgs::msg::dds_::Imu_", "sensor_msgs::msg::dds_::PointCloud2_"};
  return kNames[static_cast<size_t>(message)];
}

/// The DDS name of a topic, given without its first slash.
inline std::string topic_name(std::string_view topic) { return "rt/" + std::string(topic); }

/// Whether a message can have a payload of this many bytes.
inline bool has_size(Message message, uint64_t bytes) noexcept {
  if (message == Message::imu) return bytes == LAGOMETER_IMU_BYTES;
  return message != Message::point_cloud || bytes % LAGOMETER_POINT_BYTES == 0;
}

/// The sizes that has_size() accepts, in words.
inline const char* sizes_of(Message message) noexcept {
  if (message == Message::imu) return "328 bytes";
  return message == Message::point_cloud ? "a multiple of 16 bytes" : "any number of bytes";
}

constexpr const char* kFrameId = "lagometer";  // Image and PointCloud2; in Imu it holds the envelope
constexpr const char* kEncoding = "mono8";     // Image: a byte per pixel
constexpr char kFiller = ' ';                  // text that nobody has written yet

/// Rows and columns of an image with one byte per pixel.
struct ImageSize {
  uint32_t height;
  uint32_t width;
};

/// The squarest image of exactly this many pixels; never higher than wide.
inline ImageSize image_size(uint64_t bytes) noexcept {
  uint64_t height = 1;
  for (uint64_t divisor = 2; divisor <= bytes / divisor; ++divisor) {
    if (bytes % divisor == 0) height = divisor;
  }
  return {.height = static_cast<uint32_t>(height), .width = static_cast<uint32_t>(bytes / height)};
}

/// The fields of a point: four 32-bit floats (datatype 7 of sensor_msgs/PointField).
constexpr std::array<const char*, 4> kPointFields{"x", "y", "z", "intensity"};
constexpr uint32_t kPointFieldBytes = LAGOMETER_POINT_BYTES / kPointFields.size();
constexpr uint8_t kPointFieldFloat32 = 7;

/// The numbers of an Imu in the order of its IDL. Each is 8 bytes, so there is no padding.
struct ImuNumbers {
  std::array<double, 4> orientation;  // x, y, z, w
  std::array<double, 9> orientation_covariance;
  std::array<double, 3> angular_velocity;
  std::array<double, 9> angular_velocity_covariance;
  std::array<double, 3> linear_acceleration;
  std::array<double, 9> linear_acceleration_covariance;
};
static_assert(sizeof(ImuNumbers) == LAGOMETER_IMU_BYTES - LAGOMETER_TEXT_ENVELOPE_BYTES);

/// No rotation, at rest, covariances unknown.
constexpr ImuNumbers kImuAtRest{.orientation = {0.0, 0.0, 0.0, 1.0},
                                .orientation_covariance = {},
                                .angular_velocity = {},
                                .angular_velocity_covariance = {},
                                .linear_acceleration = {},
                                .linear_acceleration_covariance = {}};

}  // namespace lagometer::ros2
