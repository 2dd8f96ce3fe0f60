// SPDX-License-Identifier: Apache-2.0
#include "type.hpp"

#include <algorithm>
#include <array>

#include "context.hpp"

namespace lagometer::fastdds {
namespace {

constexpr std::array<uint64_t, 4> kFixedBytes{64, 1024, 65536, 1048576};

}  // namespace

Type::Type(Context& context, const lagometer_type_config& config)
    : message_(ros2::message_of(view(config.name))),
      bytes_max_(config.max_bytes),
      fixed_(view(config.name) == "fixed"),
      instances_(config.instances) {
  if (fixed_) {
    if (std::find(kFixedBytes.begin(), kFixedBytes.end(), bytes_max_) == kFixedBytes.end()) {
      throw Error(LAGOMETER_INVALID,
                  "fastdds: type fixed has 64, 1024, 65536 or 1048576 bytes, not " + std::to_string(bytes_max_));
    }
    name_ = context.register_type(dds::TypeSupport(new FixedType(static_cast<uint32_t>(bytes_max_))));
    return;
  }
  if (!message_ && view(config.name) != "bytes") {
    throw Error(LAGOMETER_UNSUPPORTED, "fastdds: unknown type \"" + std::string(view(config.name)) +
                                           "\": use bytes, fixed, string, Image, Imu or PointCloud2");
  }
  if (bytes_max_ < LAGOMETER_PAYLOAD_BYTES_MIN || bytes_max_ > INT32_MAX) {
    throw Error(LAGOMETER_INVALID, "fastdds: a payload has 4 to 2147483647 bytes, not " + std::to_string(bytes_max_));
  }
  if (message_ && !ros2::has_size(*message_, bytes_max_)) {
    throw Error(LAGOMETER_INVALID, "fastdds: a payload of type " + std::string(view(config.name)) + " has " +
                                       ros2::sizes_of(*message_) + ", not " + std::to_string(bytes_max_));
  }
  name_ = context.register_type(message_         ? dds::TypeSupport(make_type(*message_).release())
                                : instances_ > 0 ? dds::TypeSupport(make_keyed_type().release())
                                                 : dds::TypeSupport(new BytesType));
}

std::string Type::topic_name(std::string_view topic) const {
  return message_ ? ros2::topic_name(topic) : std::string(topic);
}

std::unique_ptr<Message> Type::make_message() const {
  if (message_) return fastdds::make_message(*message_);
  if (instances_ > 0) return std::make_unique<KeyedMessage>();
  return std::make_unique<BytesMessage>();
}

void Type::check(uint64_t bytes, const std::string& topic) const {
  if (bytes > bytes_max_ || (fixed_ && bytes != bytes_max_)) {
    throw Error(LAGOMETER_INVALID, "fastdds: a message on topic " + topic + " has " + (fixed_ ? "" : "up to ") +
                                       std::to_string(bytes_max_) + " bytes, not " + std::to_string(bytes));
  }
  if (message_ && !ros2::has_size(*message_, bytes)) {
    throw Error(LAGOMETER_INVALID, "fastdds: a message on topic " + topic + " has " + ros2::sizes_of(*message_) +
                                       ", not " + std::to_string(bytes));
  }
}

}  // namespace lagometer::fastdds
