// SPDX-License-Identifier: Apache-2.0
// A type with any name whose messages are taken as they arrive: nothing is decoded.
#pragma once

#include <array>
#include <cstdint>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <functional>
#include <string>

namespace lagometer::listen {

/// What is kept of a message: its serialised length, and its first bytes, including the encapsulation.
struct Raw {
  uint32_t bytes = 0;
  std::array<uint8_t, 12> head{};
};

class RawType : public eprosima::fastdds::dds::TopicDataType {
 public:
  RawType(const std::string& name, bool is_keyed);

  /// Nothing is ever sent: always returns false.
  bool serialize(void* data, eprosima::fastrtps::rtps::SerializedPayload_t* payload) override;
  bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t* payload, void* data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override;
  void* createData() override;
  void deleteData(void* data) override;
  /// Puts all messages of a keyed topic that arrive without the hash of their key into one instance.
  bool getKey(void* data, eprosima::fastrtps::rtps::InstanceHandle_t* handle, bool force_md5) override;
};

}  // namespace lagometer::listen
