// SPDX-License-Identifier: Apache-2.0
#include "message_types.hpp"

#include <cstring>

#include "cdr.hpp"
#include "layer_notes.hpp"

namespace lagometer::fastdds {
namespace {

constexpr uint32_t kLengthBytes = 4;
constexpr uint32_t kHashBytes = 16;  // of a key
// The initial capacity that the vendor's generator reserves for an unbounded sequence of octets: 100 elements. Payloads
// grow to the size in use with their first messages.
constexpr uint32_t kOctetsInitial = 100;

void write_header(rtps::SerializedPayload_t& payload) noexcept {
  payload.encapsulation = CDR_LE;
  payload.data[0] = 0;
  payload.data[1] = CDR_LE;
  payload.data[2] = 0;
  payload.data[3] = 0;
}

bool is_little_endian(const rtps::SerializedPayload_t& payload) noexcept { return (payload.data[1] & 1U) != 0; }

uint32_t read_length(const rtps::SerializedPayload_t& payload) noexcept {
  uint32_t length = 0;
  std::memcpy(&length, payload.data + kEncapsulationBytes, sizeof length);
  return is_little_endian(payload) ? length : __builtin_bswap32(length);
}

// Every sample is accessed through its base class, so that a pointer to it is the same for all types.
template <typename Kind>
Kind& sample_of(void* data) noexcept {
  return static_cast<Kind&>(*static_cast<Message*>(data));
}
void* handed_over(std::unique_ptr<Message> message) noexcept { return message.release(); }
void taken_back(void* data) noexcept { std::unique_ptr<Message>(static_cast<Message*>(data)).reset(); }

template <typename Kind>
uint32_t wire_bytes(const Kind& message) noexcept {
  CdrCount count;
  message.write(count);
  return kEncapsulationBytes + count.bytes();
}

template <typename Kind>
class RosType : public dds::TopicDataType {
 public:
  explicit RosType(const char* name) {
    setName(name);
    m_typeSize = wire_bytes(Kind()) + kOctetsInitial;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    const LayerWork work(LAGOMETER_LAYER_SERIALISE, data);
    const auto& message = sample_of<const Kind>(data);
    const uint32_t bytes = wire_bytes(message);
    if (payload->max_size < bytes) return false;
    write_header(*payload);
    CdrOutput output(payload->data + kEncapsulationBytes);
    message.write(output);
    payload->length = bytes;
    return true;
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    const LayerWork work(LAGOMETER_LAYER_DESERIALISE, data);
    if (payload->length < kEncapsulationBytes) return false;
    CdrInput input(payload->data + kEncapsulationBytes, payload->length - kEncapsulationBytes,
                   is_little_endian(*payload));
    return sample_of<Kind>(data).read(input);
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    const auto* message = &sample_of<const Kind>(data);
    return [message] { return wire_bytes(*message); };
  }
  void* createData() override { return handed_over(std::make_unique<Kind>()); }
  void deleteData(void* data) override { taken_back(data); }
  bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
};

/// The hash of a key that is not longer than a hash is the key itself, big-endian (RTPS 2.5, 9.6.4.8).
class KeyedType final : public RosType<KeyedMessage> {
 public:
  KeyedType() : RosType("lagometer::KeyedBytes") { m_isGetKeyDefined = true; }
  bool getKey(void* data, rtps::InstanceHandle_t* handle, bool) override {
    const uint32_t key = __builtin_bswap32(sample_of<const KeyedMessage>(data).instance);
    std::memset(handle->value, 0, sizeof(rtps::octet) * kHashBytes);
    std::memcpy(handle->value, &key, sizeof key);
    return true;
  }
};

}  // namespace

BytesType::BytesType() {
  setName("lagometer::Bytes");
  m_typeSize = kEncapsulationBytes + kLengthBytes + kOctetsInitial;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool BytesType::serialize(void* data, rtps::SerializedPayload_t* payload) {
  const LayerWork work(LAGOMETER_LAYER_SERIALISE, data);
  const auto& octets = sample_of<const BytesMessage>(data).data;
  const auto length = static_cast<uint32_t>(octets.size());
  const uint32_t bytes = kEncapsulationBytes + kLengthBytes + length;
  if (payload->max_size < bytes) return false;
  write_header(*payload);
  std::memcpy(payload->data + kEncapsulationBytes, &length, sizeof length);
  std::memcpy(payload->data + kEncapsulationBytes + kLengthBytes, octets.data(), length);
  payload->length = bytes;
  return true;
}

bool BytesType::deserialize(rtps::SerializedPayload_t* payload, void* data) {
  const LayerWork work(LAGOMETER_LAYER_DESERIALISE, data);
  if (payload->length < kEncapsulationBytes + kLengthBytes) return false;
  const uint32_t length = read_length(*payload);
  if (length > payload->length - kEncapsulationBytes - kLengthBytes) return false;
  const uint8_t* octets = payload->data + kEncapsulationBytes + kLengthBytes;
  sample_of<BytesMessage>(data).data.assign(octets, octets + length);  // keeps its memory for the next message
  return true;
}

std::function<uint32_t()> BytesType::getSerializedSizeProvider(void* data) {
  const auto* message = &sample_of<const BytesMessage>(data);
  return [message] { return kEncapsulationBytes + kLengthBytes + static_cast<uint32_t>(message->data.size()); };
}

void* BytesType::createData() { return handed_over(std::make_unique<BytesMessage>()); }
void BytesType::deleteData(void* data) { taken_back(data); }
bool BytesType::getKey(void*, rtps::InstanceHandle_t*, bool) { return false; }

FixedType::FixedType(uint32_t bytes) : bytes_(bytes) {
  setName(("lagometer::Fixed" + std::to_string(bytes)).c_str());
  m_typeSize = kEncapsulationBytes + bytes;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool FixedType::serialize(void* data, rtps::SerializedPayload_t* payload) {
  const LayerWork work(LAGOMETER_LAYER_SERIALISE, data);
  if (payload->max_size < kEncapsulationBytes + bytes_) return false;
  write_header(*payload);
  std::memcpy(payload->data + kEncapsulationBytes, data, bytes_);
  payload->length = kEncapsulationBytes + bytes_;
  return true;
}

bool FixedType::deserialize(rtps::SerializedPayload_t* payload, void* data) {
  const LayerWork work(LAGOMETER_LAYER_DESERIALISE, data);
  if (payload->length < kEncapsulationBytes + bytes_) return false;
  std::memcpy(data, payload->data + kEncapsulationBytes, bytes_);
  return true;
}

std::function<uint32_t()> FixedType::getSerializedSizeProvider(void*) {
  const uint32_t bytes = kEncapsulationBytes + bytes_;
  return [bytes] { return bytes; };
}

void* FixedType::createData() { return std::make_unique<uint8_t[]>(bytes_).release(); }
void FixedType::deleteData(void* data) { std::unique_ptr<uint8_t[]>(static_cast<uint8_t*>(data)).reset(); }
bool FixedType::getKey(void*, rtps::InstanceHandle_t*, bool) { return false; }
bool FixedType::construct_sample(void* memory) const {
  std::memset(memory, 0, bytes_);
  return true;
}

std::unique_ptr<dds::TopicDataType> make_keyed_type() { return std::make_unique<KeyedType>(); }

std::unique_ptr<dds::TopicDataType> make_type(ros2::Message message) {
  const char* name = ros2::type_name(message);
  switch (message) {
    case ros2::Message::string:
      return std::make_unique<RosType<StringMessage>>(name);
    case ros2::Message::image:
      return std::make_unique<RosType<ImageMessage>>(name);
    case ros2::Message::imu:
      return std::make_unique<RosType<ImuMessage>>(name);
    case ros2::Message::point_cloud:
      return std::make_unique<RosType<PointCloudMessage>>(name);
  }
  return nullptr;
}

std::unique_ptr<Message> make_message(ros2::Message message) {
  switch (message) {
    case ros2::Message::string:
      return std::make_unique<StringMessage>();
    case ros2::Message::image:
      return std::make_unique<ImageMessage>();
    case ros2::Message::imu:
      return std::make_unique<ImuMessage>();
    case ros2::Message::point_cloud:
      return std::make_unique<PointCloudMessage>();
  }
  return nullptr;
}

}  // namespace lagometer::fastdds
