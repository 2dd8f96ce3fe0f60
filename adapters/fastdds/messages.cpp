// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

namespace lagometer::fastdds {

namespace {

uint32_t shown(std::vector<uint8_t>& data, lagometer_region* regions) noexcept {
  regions[0] = {data.data(), data.size()};
  return 1;
}

lagometer_region text_region(std::string& text) noexcept {
  return {reinterpret_cast<uint8_t*>(text.data()), text.size()};
}

}  // namespace

uint32_t BytesMessage::shape(uint64_t bytes, lagometer_region* regions) {
  data.resize(bytes);
  return show(regions);
}
uint32_t BytesMessage::show(lagometer_region* regions) noexcept { return shown(data, regions); }

uint32_t KeyedMessage::shape(uint64_t bytes, lagometer_region* regions) {
  data.resize(bytes);
  return show(regions);
}
uint32_t KeyedMessage::show(lagometer_region* regions) noexcept { return shown(data, regions); }

uint32_t StringMessage::shape(uint64_t bytes, lagometer_region* regions) {
  data.resize(bytes, ros2::kFiller);
  return show(regions);
}
uint32_t StringMessage::show(lagometer_region* regions) noexcept {
  regions[0] = text_region(data);
  return 1;
}

uint32_t ImageMessage::shape(uint64_t bytes, lagometer_region* regions) {
  const ros2::ImageSize size = ros2::image_size(bytes);
  height = size.height;
  width = step = size.width;
  data.resize(bytes);
  return show(regions);
}
uint32_t ImageMessage::show(lagometer_region* regions) noexcept { return shown(data, regions); }

uint32_t ImuMessage::shape(uint64_t, lagometer_region* regions) { return show(regions); }
uint32_t ImuMessage::show(lagometer_region* regions) noexcept {
  regions[0] = text_region(header.frame_id);
  regions[1] = {reinterpret_cast<uint8_t*>(&numbers), sizeof numbers};
  return 2;
}

PointCloudMessage::PointCloudMessage() {
  for (const char* name : ros2::kPointFields) {
    const auto offset = static_cast<uint32_t>(fields.size()) * ros2::kPointFieldBytes;
    fields.push_back({.name = name, .offset = offset, .datatype = ros2::kPointFieldFloat32, .count = 1});
  }
}
uint32_t PointCloudMessage::shape(uint64_t bytes, lagometer_region* regions) {
  width = static_cast<uint32_t>(bytes / LAGOMETER_POINT_BYTES);
  row_step = static_cast<uint32_t>(bytes);
  data.resize(bytes);
  return show(regions);
}
uint32_t PointCloudMessage::show(lagometer_region* regions) noexcept { return shown(data, regions); }

}  // namespace lagometer::fastdds
