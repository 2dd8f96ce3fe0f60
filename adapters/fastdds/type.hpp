// SPDX-License-Identifier: Apache-2.0
// The two payload types on the wire, written by hand as the vendor's generator would declare them:
//   module lagometer { @final struct Bytes { sequence<octet> data; }; struct Fixed64 { octet data[64]; }; ... };
// Plain CDR, version 1, little-endian: a 4-byte encapsulation header, then for Bytes a u32 length and the octets, for
// FixedN the N octets.
#pragma once

#include <cstdint>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <string>
#include <vector>

#include "binding.hpp"

namespace lagometer::fastdds {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

/// A sample of type Bytes: where its octets lie. Sent, they are the adapter's buffer; received, they were copied out of
/// the middleware's payload into `owned`, as the vendor's generated types do: a view into the payload would measure
/// less than an application gets.
struct BytesView {
  uint8_t* data = nullptr;
  uint32_t size = 0;
  std::vector<uint8_t> owned{};
};

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

/// A plain type: its memory is its wire form, so it can be lent and shared.
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

class Context;

/// A payload type of the registry, registered with the participant.
class Type {
 public:
  /// Throws Error(LAGOMETER_INVALID or LAGOMETER_UNSUPPORTED) if there is no such type.
  Type(Context& context, const lagometer_type_config& config);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] uint64_t bytes_max() const noexcept { return bytes_max_; }
  [[nodiscard]] bool fixed() const noexcept { return fixed_; }

 private:
  std::string name_;  // on the wire
  uint64_t bytes_max_;
  bool fixed_;
};

}  // namespace lagometer::fastdds
