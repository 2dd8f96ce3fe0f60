// SPDX-License-Identifier: Apache-2.0
// One message of a payload type in the C language mapping of its IDL: dds_write() reads it, dds_take() writes to it.
// Created with its endpoint and reused for every message; memory that the library may enlarge comes from its allocator.
#pragma once

#include <dds/dds.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ros2_messages.hpp"

namespace lagometer::cyclonedds {

class Message {
 public:
  Message() = default;
  virtual ~Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  [[nodiscard]] virtual void* sample() noexcept = 0;
  /// For sending: resizes the message to `bytes` bytes, a size its type has, and sets where to write them. Returns the
  /// number of regions.
  virtual uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept = 0;
  /// For a received message: sets where the bytes are. Returns the number of regions.
  virtual uint32_t show(lagometer_region* regions) const noexcept = 0;
  /// The key, if the type has one.
  [[nodiscard]] virtual uint32_t instance() const noexcept { return 0; }
  virtual void set_instance(uint32_t) noexcept {}
};

struct OctetSequence {
  uint32_t maximum;
  uint32_t length;
  uint8_t* buffer;
  bool release;
};

/// struct Bytes { sequence<octet> data; }
class BytesMessage final : public Message {
 public:
  explicit BytesMessage(uint64_t bytes_max);
  ~BytesMessage() override;
  [[nodiscard]] void* sample() noexcept override { return &sample_; }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;

 private:
  OctetSequence sample_;
};

struct KeyedOctets {
  uint32_t instance;
  OctetSequence data;
};

/// struct KeyedBytes { @key unsigned long instance; sequence<octet> data; }
class KeyedMessage final : public Message {
 public:
  explicit KeyedMessage(uint64_t bytes_max);
  ~KeyedMessage() override;
  [[nodiscard]] void* sample() noexcept override { return &sample_; }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;
  [[nodiscard]] uint32_t instance() const noexcept override { return sample_.instance; }
  void set_instance(uint32_t instance) noexcept override { sample_.instance = instance; }

 private:
  KeyedOctets sample_;
};

/// struct FixedN { octet data[N]; }
class FixedMessage final : public Message {
 public:
  explicit FixedMessage(uint64_t bytes) : sample_(bytes) {}
  [[nodiscard]] void* sample() noexcept override { return sample_.data(); }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;

 private:
  std::vector<uint8_t> sample_;
};

// What the vendor's compiler generates from the IDL of ROS 2. Text ends with a zero.
struct RosTime {
  int32_t sec;
  uint32_t nanosec;
};
struct RosHeader {
  RosTime stamp;
  char* frame_id;
};
struct RosString {
  char* data;
};
struct RosImage {
  RosHeader header;
  uint32_t height;
  uint32_t width;
  char* encoding;
  uint8_t is_bigendian;
  uint32_t step;
  OctetSequence data;
};
struct RosImu {
  RosHeader header;
  ros2::ImuNumbers numbers;
};
struct RosPointField {
  char* name;
  uint32_t offset;
  uint8_t datatype;
  uint32_t count;
};
struct RosPointFieldSequence {
  uint32_t maximum;
  uint32_t length;
  RosPointField* buffer;
  bool release;
};
struct RosPointCloud {
  RosHeader header;
  uint32_t height;
  uint32_t width;
  RosPointFieldSequence fields;
  bool is_bigendian;
  uint32_t point_step;
  uint32_t row_step;
  OctetSequence data;
  bool is_dense;
};

/// The library's descriptor of a ROS 2 message. Valid until the process ends.
const dds_topic_descriptor_t& descriptor_of(ros2::Message message) noexcept;

/// A ROS 2 message. `Struct` is zero at first; the memory it points at is freed with it.
template <typename Struct, ros2::Message kMessage>
class RosMessage : public Message {
  static_assert(std::is_standard_layout_v<Struct> && std::is_trivially_copyable_v<Struct>);

 public:
  ~RosMessage() override { dds_sample_free(&sample_, &descriptor_of(kMessage), DDS_FREE_CONTENTS); }
  [[nodiscard]] void* sample() noexcept override { return &sample_; }

 protected:
  Struct sample_{};
};

class StringMessage final : public RosMessage<RosString, ros2::Message::string> {
 public:
  explicit StringMessage(uint64_t bytes_max);
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;

 private:
  uint64_t end_;  // where the text to be sent ends
};

class ImageMessage final : public RosMessage<RosImage, ros2::Message::image> {
 public:
  explicit ImageMessage(uint64_t bytes_max);
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;
};

class ImuMessage final : public RosMessage<RosImu, ros2::Message::imu> {
 public:
  ImuMessage();
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;
};

class PointCloudMessage final : public RosMessage<RosPointCloud, ros2::Message::point_cloud> {
 public:
  explicit PointCloudMessage(uint64_t bytes_max);
  uint32_t shape(uint64_t bytes, lagometer_region* regions) noexcept override;
  uint32_t show(lagometer_region* regions) const noexcept override;
};

}  // namespace lagometer::cyclonedds
