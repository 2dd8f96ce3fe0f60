// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <array>
#include <cstring>

namespace lagometer::cyclonedds {

namespace {

// --- What the vendor's compiler generates for the IDL: the fields in order, then the structures that they refer to.
// ---

constexpr uint32_t member(uint32_t type) noexcept { return uint32_t{DDS_OP_ADR} | type; }
constexpr uint32_t octets() noexcept {
  return member(uint32_t{DDS_OP_TYPE_SEQ} | static_cast<uint32_t>(DDS_OP_SUBTYPE_1BY));
}
constexpr uint32_t nine_numbers() noexcept {
  return member(uint32_t{DDS_OP_TYPE_ARR} | static_cast<uint32_t>(DDS_OP_SUBTYPE_8BY) | DDS_OP_FLAG_FP);
}
/// Follows a member that is a structure: the length of its own instruction, and the distance to the structure's
/// instructions.
constexpr uint32_t structure(uint32_t length, uint32_t distance) noexcept { return (length << 16U) | distance; }

constexpr uint32_t kNumber32 = member(DDS_OP_TYPE_4BY);
constexpr uint32_t kNumber8 = member(DDS_OP_TYPE_1BY);
constexpr uint32_t kText = member(DDS_OP_TYPE_STR);
constexpr uint32_t kTruth = member(DDS_OP_TYPE_BLN);
constexpr uint32_t kStructure = member(DDS_OP_TYPE_EXT);
constexpr uint32_t kDouble = member(DDS_OP_TYPE_8BY) | DDS_OP_FLAG_FP;

// The instructions of Header_, followed by those of Time_.
#define LAGOMETER_HEADER_OPERATIONS                                                                          \
  kStructure, offsetof(RosHeader, stamp), structure(3, 6), kText, offsetof(RosHeader, frame_id), DDS_OP_RTS, \
      kNumber32 | DDS_OP_FLAG_SGN, offsetof(RosTime, sec), kNumber32, offsetof(RosTime, nanosec), DDS_OP_RTS

constexpr uint32_t kStringOperations[] = {kText, offsetof(RosString, data), DDS_OP_RTS};

constexpr uint32_t kImageOperations[] = {
    // clang-format off
    kStructure, offsetof(RosImage, header), structure(3, 16),
    kNumber32, offsetof(RosImage, height),
    kNumber32, offsetof(RosImage, width),
    kText, offsetof(RosImage, encoding),
    kNumber8, offsetof(RosImage, is_bigendian),
    kNumber32, offsetof(RosImage, step),
    octets(), offsetof(RosImage, data),
    DDS_OP_RTS,
    LAGOMETER_HEADER_OPERATIONS
    // clang-format on
};

constexpr uint32_t imu_offset(size_t within_numbers) noexcept {
  return static_cast<uint32_t>(offsetof(RosImu, numbers) + within_numbers);
}

constexpr uint32_t kImuOperations[] = {
    // clang-format off
    kStructure, offsetof(RosImu, header), structure(3, 22),
    kStructure, imu_offset(offsetof(ros2::ImuNumbers, orientation)), structure(3, 30),
    nine_numbers(), imu_offset(offsetof(ros2::ImuNumbers, orientation_covariance)), 9,
    kStructure, imu_offset(offsetof(ros2::ImuNumbers, angular_velocity)), structure(3, 33),
    nine_numbers(), imu_offset(offsetof(ros2::ImuNumbers, angular_velocity_covariance)), 9,
    kStructure, imu_offset(offsetof(ros2::ImuNumbers, linear_acceleration)), structure(3, 27),
    nine_numbers(), imu_offset(offsetof(ros2::ImuNumbers, linear_acceleration_covariance)), 9,
    DDS_OP_RTS,
    LAGOMETER_HEADER_OPERATIONS,
    kDouble, 0, kDouble, 8, kDouble, 16, kDouble, 24, DDS_OP_RTS,  // Quaternion_
    kDouble, 0, kDouble, 8, kDouble, 16, DDS_OP_RTS                // Vector3_
    // clang-format on
};

constexpr uint32_t kPointCloudOperations[] = {
    // clang-format off
    kStructure, offsetof(RosPointCloud, header), structure(3, 22),
    kNumber32, offsetof(RosPointCloud, height),
    kNumber32, offsetof(RosPointCloud, width),
    member(uint32_t{DDS_OP_TYPE_SEQ} | static_cast<uint32_t>(DDS_OP_SUBTYPE_STU)), offsetof(RosPointCloud, fields),
        sizeof(RosPointField), structure(4, 26),
    kTruth, offsetof(RosPointCloud, is_bigendian),
    kNumber32, offsetof(RosPointCloud, point_step),
    kNumber32, offsetof(RosPointCloud, row_step),
    octets(), offsetof(RosPointCloud, data),
    kTruth, offsetof(RosPointCloud, is_dense),
    DDS_OP_RTS,
    LAGOMETER_HEADER_OPERATIONS,
    kText, offsetof(RosPointField, name),  // PointField_
    kNumber32, offsetof(RosPointField, offset),
    kNumber8, offsetof(RosPointField, datatype),
    kNumber32, offsetof(RosPointField, count),
    DDS_OP_RTS
    // clang-format on
};
#undef LAGOMETER_HEADER_OPERATIONS

template <typename Struct>
dds_topic_descriptor_t described(ros2::Message message, const uint32_t* operations, uint32_t instructions) noexcept {
  return {.m_size = static_cast<uint32_t>(sizeof(Struct)),
          .m_align = static_cast<uint32_t>(alignof(Struct)),
          .m_flagset = 0,
          .m_nkeys = 0,
          .m_typename = ros2::type_name(message),
          .m_keys = nullptr,
          .m_nops = instructions,
          .m_ops = operations,
          .m_meta = "",
          .type_information = {},
          .type_mapping = {},
          .restrict_data_representation = 0};
}

// --- Memory that the library may enlarge, and frees. ---

char* text_of(uint64_t length) noexcept {
  auto* text = static_cast<char*>(dds_alloc(length + 1));
  std::memset(text, ros2::kFiller, length);
  text[length] = '\0';
  return text;
}

OctetSequence octets_of(uint64_t bytes_max) noexcept {
  auto* buffer = static_cast<uint8_t*>(dds_alloc(bytes_max));
  std::memset(buffer, 0, bytes_max);
  return {.maximum = static_cast<uint32_t>(bytes_max), .length = 0, .buffer = buffer, .release = true};
}

uint32_t resized(OctetSequence& octets, uint64_t bytes, lagometer_region* regions) noexcept {
  octets.length = static_cast<uint32_t>(bytes);
  regions[0] = {octets.buffer, bytes};
  return 1;
}

uint32_t shown(const OctetSequence& octets, lagometer_region* regions) noexcept {
  regions[0] = {octets.buffer, octets.length};
  return 1;
}

lagometer_region text_region(char* text) noexcept {
  return {reinterpret_cast<uint8_t*>(text), text == nullptr ? 0 : std::strlen(text)};
}

RosPointFieldSequence point_fields() noexcept {
  constexpr auto kCount = static_cast<uint32_t>(ros2::kPointFields.size());
  auto* fields = static_cast<RosPointField*>(dds_alloc(kCount * sizeof(RosPointField)));
  for (uint32_t index = 0; index < kCount; ++index) {
    fields[index] = {.name = dds_string_dup(ros2::kPointFields[index]),
                     .offset = index * ros2::kPointFieldBytes,
                     .datatype = ros2::kPointFieldFloat32,
                     .count = 1};
  }
  return {.maximum = kCount, .length = kCount, .buffer = fields, .release = true};
}

}  // namespace

const dds_topic_descriptor_t& descriptor_of(ros2::Message message) noexcept {
  static const std::array<dds_topic_descriptor_t, 4> all = {
      described<RosString>(ros2::Message::string, kStringOperations, 2),
      described<RosImage>(ros2::Message::image, kImageOperations, 14),
      described<RosImu>(ros2::Message::imu, kImuOperations, 23),
      described<RosPointCloud>(ros2::Message::point_cloud, kPointCloudOperations, 21)};
  return all[static_cast<size_t>(message)];
}

BytesMessage::BytesMessage(uint64_t bytes_max) : sample_(octets_of(bytes_max)) {}
BytesMessage::~BytesMessage() { dds_free(sample_.buffer); }
uint32_t BytesMessage::shape(uint64_t bytes, lagometer_region* regions) noexcept {
  return resized(sample_, bytes, regions);
}
uint32_t BytesMessage::show(lagometer_region* regions) const noexcept { return shown(sample_, regions); }

KeyedMessage::KeyedMessage(uint64_t bytes_max) : sample_{.instance = 0, .data = octets_of(bytes_max)} {}
KeyedMessage::~KeyedMessage() { dds_free(sample_.data.buffer); }
uint32_t KeyedMessage::shape(uint64_t bytes, lagometer_region* regions) noexcept {
  return resized(sample_.data, bytes, regions);
}
uint32_t KeyedMessage::show(lagometer_region* regions) const noexcept { return shown(sample_.data, regions); }

uint32_t FixedMessage::shape(uint64_t, lagometer_region* regions) noexcept {
  regions[0] = {sample_.data(), sample_.size()};
  return 1;
}
uint32_t FixedMessage::show(lagometer_region* regions) const noexcept {
  regions[0] = {const_cast<uint8_t*>(sample_.data()), sample_.size()};  // nobody writes there (adapter.h)
  return 1;
}

StringMessage::StringMessage(uint64_t bytes_max) : end_(bytes_max) { sample_.data = text_of(bytes_max); }
uint32_t StringMessage::shape(uint64_t bytes, lagometer_region* regions) noexcept {
  sample_.data[end_] = ros2::kFiller;  // a longer text continues here
  sample_.data[bytes] = '\0';
  end_ = bytes;
  regions[0] = {reinterpret_cast<uint8_t*>(sample_.data), bytes};
  return 1;
}
// The C mapping has no length, so a receiver of a text measures it.
uint32_t StringMessage::show(lagometer_region* regions) const noexcept {
  regions[0] = text_region(sample_.data);
  return 1;
}

ImageMessage::ImageMessage(uint64_t bytes_max) {
  sample_.header.frame_id = dds_string_dup(ros2::kFrameId);
  sample_.encoding = dds_string_dup(ros2::kEncoding);
  sample_.data = octets_of(bytes_max);
}
uint32_t ImageMessage::shape(uint64_t bytes, lagometer_region* regions) noexcept {
  const ros2::ImageSize size = ros2::image_size(bytes);
  sample_.height = size.height;
  sample_.width = sample_.step = size.width;
  return resized(sample_.data, bytes, regions);
}
uint32_t ImageMessage::show(lagometer_region* regions) const noexcept { return shown(sample_.data, regions); }

ImuMessage::ImuMessage() {
  sample_.header.frame_id = text_of(LAGOMETER_TEXT_ENVELOPE_BYTES);
  sample_.numbers = ros2::kImuAtRest;
}
uint32_t ImuMessage::shape(uint64_t, lagometer_region* regions) noexcept { return show(regions); }
uint32_t ImuMessage::show(lagometer_region* regions) const noexcept {
  regions[0] = text_region(sample_.header.frame_id);
  const auto* numbers = reinterpret_cast<const uint8_t*>(&sample_.numbers);
  regions[1] = {const_cast<uint8_t*>(numbers), sizeof sample_.numbers};
  return 2;
}

PointCloudMessage::PointCloudMessage(uint64_t bytes_max) {
  sample_.header.frame_id = dds_string_dup(ros2::kFrameId);
  sample_.height = 1;
  sample_.fields = point_fields();
  sample_.point_step = LAGOMETER_POINT_BYTES;
  sample_.data = octets_of(bytes_max);
}
uint32_t PointCloudMessage::shape(uint64_t bytes, lagometer_region* regions) noexcept {
  sample_.width = static_cast<uint32_t>(bytes / LAGOMETER_POINT_BYTES);
  sample_.row_step = static_cast<uint32_t>(bytes);
  return resized(sample_.data, bytes, regions);
}
uint32_t PointCloudMessage::show(lagometer_region* regions) const noexcept { return shown(sample_.data, regions); }

}  // namespace lagometer::cyclonedds
