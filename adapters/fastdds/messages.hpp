// SPDX-License-Identifier: Apache-2.0
// One message of a payload type, to be sent or received: the structure that the vendor's generator would declare for
// its IDL. In a received message everything was copied out of the middleware's payload, as generated types do: a view
// into the payload would omit work that an application has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ros2_messages.hpp"

namespace lagometer::fastdds {

/// For any type but Fixed, whose samples are plain memory.
class Message {
 public:
  Message() = default;
  virtual ~Message() = default;
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  /// For sending: resizes the message to `bytes` bytes, a size its type has, and sets where to write them. Returns the
  /// number of regions.
  virtual uint32_t shape(uint64_t bytes, lagometer_region* regions) = 0;
  /// For a received message: sets where the bytes are. Returns the number of regions.
  virtual uint32_t show(lagometer_region* regions) noexcept = 0;
  /// The key, if the type has one.
  [[nodiscard]] virtual uint32_t key() const noexcept { return 0; }
  virtual void set_key(uint32_t) noexcept {}
};

struct BytesMessage final : Message {
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  std::vector<uint8_t> data{};
};

struct KeyedMessage final : Message {
  template <typename Output>
  void write(Output& output) const {
    output.number(instance);
    output.octets(data);
  }
  template <typename Input>
  bool read(Input& input) {
    return input.number(instance) && input.octets(data);
  }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  [[nodiscard]] uint32_t key() const noexcept override { return instance; }
  void set_key(uint32_t wanted) noexcept override { instance = wanted; }
  uint32_t instance = 0;
  std::vector<uint8_t> data{};
};

// --- ROS 2 messages. Like KeyedMessage, each writes itself to a CdrCount or CdrOutput, and reads itself from a
// CdrInput. ---

struct RosHeader {
  template <typename Output>
  void write(Output& output) const {
    output.number(sec);
    output.number(nanosec);
    output.text(frame_id);
  }
  template <typename Input>
  bool read(Input& input) {
    return input.number(sec) && input.number(nanosec) && input.text(frame_id);
  }
  int32_t sec = 0;  // of stamp: messages carry no time
  uint32_t nanosec = 0;
  std::string frame_id = ros2::kFrameId;
};

struct StringMessage final : Message {
  template <typename Output>
  void write(Output& output) const {
    output.text(data);
  }
  template <typename Input>
  bool read(Input& input) {
    return input.text(data);
  }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  std::string data{};
};

struct ImageMessage final : Message {
  template <typename Output>
  void write(Output& output) const {
    header.write(output);
    output.number(height);
    output.number(width);
    output.text(encoding);
    output.number(is_bigendian);
    output.number(step);
    output.octets(data);
  }
  template <typename Input>
  bool read(Input& input) {
    return header.read(input) && input.number(height) && input.number(width) && input.text(encoding) &&
           input.number(is_bigendian) && input.number(step) && input.octets(data);
  }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  RosHeader header{};
  uint32_t height = 0;
  uint32_t width = 0;
  std::string encoding = ros2::kEncoding;
  uint8_t is_bigendian = 0;
  uint32_t step = 0;
  std::vector<uint8_t> data{};
};

struct ImuMessage final : Message {
  ImuMessage() { header.frame_id.assign(LAGOMETER_TEXT_ENVELOPE_BYTES, ros2::kFiller); }
  template <typename Output>
  void write(Output& output) const {
    header.write(output);
    output.doubles(&numbers, sizeof numbers);
  }
  template <typename Input>
  bool read(Input& input) {
    return header.read(input) && input.doubles(&numbers, sizeof numbers);
  }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  RosHeader header{};
  ros2::ImuNumbers numbers = ros2::kImuAtRest;
};

struct RosPointField {
  static constexpr uint32_t kBytesMin = 4 + 4 + 1 + 4;  // an empty name, and no padding
  template <typename Output>
  void write(Output& output) const {
    output.text(name);
    output.number(offset);
    output.number(datatype);
    output.number(count);
  }
  template <typename Input>
  bool read(Input& input) {
    return input.text(name) && input.number(offset) && input.number(datatype) && input.number(count);
  }
  std::string name{};
  uint32_t offset = 0;
  uint8_t datatype = 0;
  uint32_t count = 0;
};

struct PointCloudMessage final : Message {
  PointCloudMessage();
  template <typename Output>
  void write(Output& output) const {
    header.write(output);
    output.number(height);
    output.number(width);
    output.number(static_cast<uint32_t>(fields.size()));
    for (const RosPointField& field : fields) field.write(output);
    output.number(is_bigendian);
    output.number(point_step);
    output.number(row_step);
    output.octets(data);
    output.number(is_dense);
  }
  template <typename Input>
  bool read(Input& input) {
    uint32_t count = 0;
    if (!header.read(input) || !input.number(height) || !input.number(width) ||
        !input.count(count, RosPointField::kBytesMin))
      return false;
    fields.resize(count);
    for (RosPointField& field : fields) {
      if (!field.read(input)) return false;
    }
    return input.number(is_bigendian) && input.number(point_step) && input.number(row_step) && input.octets(data) &&
           input.number(is_dense);
  }
  uint32_t shape(uint64_t bytes, lagometer_region* regions) override;
  uint32_t show(lagometer_region* regions) noexcept override;
  RosHeader header{};
  uint32_t height = 1;
  uint32_t width = 0;
  std::vector<RosPointField> fields{};
  uint8_t is_bigendian = 0;  // booleans are octets on the wire
  uint32_t point_step = LAGOMETER_POINT_BYTES;
  uint32_t row_step = 0;
  std::vector<uint8_t> data{};
  uint8_t is_dense = 0;  // the values in `data` need not be finite
};

}  // namespace lagometer::fastdds
