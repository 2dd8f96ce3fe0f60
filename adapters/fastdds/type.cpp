// SPDX-License-Identifier: Apache-2.0
#include "type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "context.hpp"

namespace lagometer::fastdds {
namespace {

constexpr uint32_t kHeaderBytes = 4;  // encapsulation identifier and options
constexpr uint32_t kLengthBytes = 4;
// What the vendor's generator reserves at first for an unbounded sequence of octets: 100 elements. Payloads grow to the
// size in use with their first messages.
constexpr uint32_t kBytesInitial = 100;
constexpr std::array<uint64_t, 4> kFixedBytes{64, 1024, 65536, 1048576};

void write_header(rtps::SerializedPayload_t& payload) noexcept {
  payload.encapsulation = CDR_LE;
  payload.data[0] = 0;
  payload.data[1] = CDR_LE;
  payload.data[2] = 0;
  payload.data[3] = 0;
}

uint32_t read_length(const rtps::SerializedPayload_t& payload) noexcept {
  uint32_t length = 0;
  std::memcpy(&length, payload.data + kHeaderBytes, sizeof length);
  const bool sender_little = (payload.data[1] & 1U) != 0;
  return sender_little == (std::endian::native == std::endian::little) ? length : __builtin_bswap32(length);
}

}  // namespace

BytesType::BytesType() {
  setName("lagometer::Bytes");
  m_typeSize = kHeaderBytes + kLengthBytes + kBytesInitial;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool BytesType::serialize(void* data, rtps::SerializedPayload_t* payload) {
  const auto& view = *static_cast<const BytesView*>(data);
  const uint32_t bytes = kHeaderBytes + kLengthBytes + view.size;
  if (payload->max_size < bytes) return false;
  write_header(*payload);
  std::memcpy(payload->data + kHeaderBytes, &view.size, sizeof view.size);
  std::memcpy(payload->data + kHeaderBytes + kLengthBytes, view.data, view.size);
  payload->length = bytes;
  return true;
}

// No copy: the payload is lent together with the sample, so the view may point into it.
bool BytesType::deserialize(rtps::SerializedPayload_t* payload, void* data) {
  if (payload->length < kHeaderBytes + kLengthBytes) return false;
  const uint32_t length = read_length(*payload);
  if (length > payload->length - kHeaderBytes - kLengthBytes) return false;
  auto& bytes = *static_cast<BytesView*>(data);
  const uint8_t* octets = payload->data + kHeaderBytes + kLengthBytes;
  bytes.owned.assign(octets, octets + length);  // keeps its memory from one message to the next
  bytes.data = bytes.owned.data();
  bytes.size = length;
  return true;
}

std::function<uint32_t()> BytesType::getSerializedSizeProvider(void* data) {
  const auto* view = static_cast<const BytesView*>(data);
  return [view] { return kHeaderBytes + kLengthBytes + view->size; };
}

void* BytesType::createData() { return std::make_unique<BytesView>().release(); }
void BytesType::deleteData(void* data) { std::unique_ptr<BytesView>(static_cast<BytesView*>(data)).reset(); }
bool BytesType::getKey(void*, rtps::InstanceHandle_t*, bool) { return false; }

FixedType::FixedType(uint32_t bytes) : bytes_(bytes) {
  setName(("lagometer::Fixed" + std::to_string(bytes)).c_str());
  m_typeSize = kHeaderBytes + bytes;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
}

bool FixedType::serialize(void* data, rtps::SerializedPayload_t* payload) {
  if (payload->max_size < kHeaderBytes + bytes_) return false;
  write_header(*payload);
  std::memcpy(payload->data + kHeaderBytes, data, bytes_);
  payload->length = kHeaderBytes + bytes_;
  return true;
}

bool FixedType::deserialize(rtps::SerializedPayload_t* payload, void* data) {
  if (payload->length < kHeaderBytes + bytes_) return false;
  std::memcpy(data, payload->data + kHeaderBytes, bytes_);
  return true;
}

std::function<uint32_t()> FixedType::getSerializedSizeProvider(void*) {
  const uint32_t bytes = kHeaderBytes + bytes_;
  return [bytes] { return bytes; };
}

void* FixedType::createData() { return std::make_unique<uint8_t[]>(bytes_).release(); }
void FixedType::deleteData(void* data) { std::unique_ptr<uint8_t[]>(static_cast<uint8_t*>(data)).reset(); }
bool FixedType::getKey(void*, rtps::InstanceHandle_t*, bool) { return false; }
bool FixedType::construct_sample(void* memory) const {
  std::memset(memory, 0, bytes_);
  return true;
}

Type::Type(Context& context, const lagometer_type_config& config)
    : bytes_max_(config.max_bytes), fixed_(view(config.name) == "fixed") {
  if (config.flags != 0) throw Error(LAGOMETER_UNSUPPORTED, "fastdds: only keyless types: leave the flags at 0");
  if (fixed_) {
    if (std::find(kFixedBytes.begin(), kFixedBytes.end(), bytes_max_) == kFixedBytes.end()) {
      throw Error(LAGOMETER_INVALID,
                  "fastdds: type fixed has 64, 1024, 65536 or 1048576 bytes, not " + std::to_string(bytes_max_));
    }
    name_ = context.register_type(dds::TypeSupport(new FixedType(static_cast<uint32_t>(bytes_max_))));
    return;
  }
  if (view(config.name) != "bytes") {
    throw Error(LAGOMETER_UNSUPPORTED,
                "fastdds: unknown type \"" + std::string(view(config.name)) + "\": use bytes or fixed");
  }
  if (bytes_max_ < LAGOMETER_ENVELOPE_BYTES || bytes_max_ > INT32_MAX) {
    throw Error(LAGOMETER_INVALID, "fastdds: a payload has 16 to 2147483647 bytes, not " + std::to_string(bytes_max_));
  }
  name_ = context.register_type(dds::TypeSupport(new BytesType));
}

}  // namespace lagometer::fastdds
