// SPDX-License-Identifier: Apache-2.0
// The payload types on the wire, written by hand as the vendor's generator would declare them:
//   module lagometer { @final struct Bytes { sequence<octet> data; }; struct Fixed64 { octet data[64]; }; ...
//     struct KeyedBytes { @key unsigned long instance; sequence<octet> data; }; };
// and ROS 2 messages as in their IDL. Plain CDR, version 1, little-endian: a 4-byte encapsulation header, then
// for Bytes a u32 length and the octets, for FixedN the N octets, for messages of ROS 2 see messages.hpp.
// To the middleware a sample is a Message, but for FixedN the N octets themselves.
#pragma once

#include <cstdint>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <memory>

#include "messages.hpp"

namespace lagometer::fastdds {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

class BytesType final : public dds::TopicDataType {
 public:
  BytesType();
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override;
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override;
  void* createData() override;
  void deleteData(void* data) override;
  bool getKey(void* data, rtps::InstanceHandle_t* handle, bool force_md5) override;
};

/// A plain type: its memory is its wire form, so it can be loaned and shared.
class FixedType final : public dds::TopicDataType {
 public:
  explicit FixedType(uint32_t bytes);
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override;
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override;
  void* createData() override;
  void deleteData(void* data) override;
  bool getKey(void* data, rtps::InstanceHandle_t* handle, bool force_md5) override;
  [[nodiscard]] bool is_bounded() const override { return true; }
  [[nodiscard]] bool is_plain() const override { return true; }
  bool construct_sample(void* memory) const override;

 private:
  uint32_t bytes_;
};

/// KeyedBytes; the caller owns it.
std::unique_ptr<dds::TopicDataType> make_keyed_type();
/// The type of a ROS 2 message; the caller owns it.
std::unique_ptr<dds::TopicDataType> make_type(ros2::Message message);
/// A message of that type.
std::unique_ptr<Message> make_message(ros2::Message message);

}  // namespace lagometer::fastdds
