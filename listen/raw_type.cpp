// SPDX-License-Identifier: Apache-2.0
#include "raw_type.hpp"

#include <algorithm>

namespace lagometer::listen {
namespace {

// Fast DDS first allocates this size for each message, and more for larger ones.
constexpr uint32_t kUsualBytes = 4096;

}  // namespace

RawType::RawType(const std::string& name, bool is_keyed) {
  setName(name.c_str());
  m_typeSize = kUsualBytes;
  m_isGetKeyDefined = is_keyed;
  auto_fill_type_information(false);
  auto_fill_type_object(false);
}

bool RawType::serialize(void*, eprosima::fastrtps::rtps::SerializedPayload_t*) { return false; }

bool RawType::deserialize(eprosima::fastrtps::rtps::SerializedPayload_t* payload, void* data) {
  Raw& raw = *static_cast<Raw*>(data);
  raw.bytes = payload->length;
  raw.head.fill(0);
  std::copy_n(payload->data, std::min<size_t>(raw.head.size(), payload->length), raw.head.begin());
  return true;
}

std::function<uint32_t()> RawType::getSerializedSizeProvider(void*) {
  return [] { return kUsualBytes; };
}

void* RawType::createData() { return new Raw; }
void RawType::deleteData(void* data) { delete static_cast<Raw*>(data); }

bool RawType::getKey(void*, eprosima::fastrtps::rtps::InstanceHandle_t* handle, bool) {
  *handle = eprosima::fastrtps::rtps::InstanceHandle_t();
  handle->value[0] = 1;
  return true;
}

}  // namespace lagometer::listen
