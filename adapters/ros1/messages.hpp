// SPDX-License-Identifier: Apache-2.0
// The ROS messages behind lagometer's payload types, and how to access their bytes.
#pragma once

#include <ros/message_traits.h>
#include <ros/serialization.h>
#include <std_msgs/UInt8MultiArray.h>

#include <boost/array.hpp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "binding.hpp"

namespace lagometer::ros1 {

/// For type "bytes".
using Bytes = std_msgs::UInt8MultiArray;

/// For type "fixed": what gencpp generates for a file lagometer/msg/FixedN.msg with the one line "uint8[N] data".
template <std::size_t N>
struct Fixed {
  Fixed() : data() { data.assign(0); }
  boost::array<uint8_t, N> data;
};

/// The name of a message type; `md5sum` is that of its definition.
template <std::size_t N>
struct FixedNames;
template <>
struct FixedNames<64> {
  static constexpr const char* datatype = "lagometer/Fixed64";
  static constexpr const char* md5sum = "1843d49ae0d694138db0e7712b15974e";
  static constexpr const char* definition = "uint8[64] data\n";
};
template <>
struct FixedNames<1024> {
  static constexpr const char* datatype = "lagometer/Fixed1024";
  static constexpr const char* md5sum = "3a98047919201ddd4c818d061ad4865b";
  static constexpr const char* definition = "uint8[1024] data\n";
};
template <>
struct FixedNames<65536> {
  static constexpr const char* datatype = "lagometer/Fixed65536";
  static constexpr const char* md5sum = "d0cc07cb7a29528671805925c7ff1ec5";
  static constexpr const char* definition = "uint8[65536] data\n";
};
template <>
struct FixedNames<1048576> {
  static constexpr const char* datatype = "lagometer/Fixed1048576";
  static constexpr const char* md5sum = "d3d23a2c89d8e7e251dfaca0f5c407c4";
  static constexpr const char* definition = "uint8[1048576] data\n";
};

/// Requests and replies: what gencpp generates for a file lagometer/srv/Bytes.srv with "uint8[] data" on both sides.
struct ServiceBytes {
  std::vector<uint8_t> data;
  static constexpr const char* datatype = "lagometer/Bytes";
  static constexpr const char* md5sum = "07ca5999d9d671038b26b777e731c7f0";
};

/// Resizes a message unless its size is fixed, and returns its bytes.
inline lagometer_region resized(Bytes& message, uint64_t bytes) {
  message.data.resize(bytes);
  return {message.data.data(), bytes};
}
inline lagometer_region resized(ServiceBytes& message, uint64_t bytes) {
  message.data.resize(bytes);
  return {message.data.data(), bytes};
}
template <std::size_t N>
lagometer_region resized(Fixed<N>& message, uint64_t) {
  return {message.data.data(), N};
}

/// Returns the bytes of a received message; nobody writes there (adapter.h).
template <typename Message>
lagometer_region shown(const Message& message) noexcept {
  return {const_cast<uint8_t*>(message.data.data()), message.data.size()};
}

}  // namespace lagometer::ros1

namespace ros::message_traits {

template <std::size_t N>
struct IsFixedSize<lagometer::ros1::Fixed<N>> : TrueType {};
template <std::size_t N>
struct IsFixedSize<const lagometer::ros1::Fixed<N>> : TrueType {};
template <std::size_t N>
struct IsMessage<lagometer::ros1::Fixed<N>> : TrueType {};
template <std::size_t N>
struct IsMessage<const lagometer::ros1::Fixed<N>> : TrueType {};

template <std::size_t N>
struct MD5Sum<lagometer::ros1::Fixed<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::md5sum; }
  static const char* value(const lagometer::ros1::Fixed<N>&) { return value(); }
};
template <std::size_t N>
struct DataType<lagometer::ros1::Fixed<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::datatype; }
  static const char* value(const lagometer::ros1::Fixed<N>&) { return value(); }
};
template <std::size_t N>
struct Definition<lagometer::ros1::Fixed<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::definition; }
  static const char* value(const lagometer::ros1::Fixed<N>&) { return value(); }
};

}  // namespace ros::message_traits

namespace ros::serialization {

template <>
struct Serializer<lagometer::ros1::ServiceBytes> {
  template <typename Stream, typename Message>
  static void allInOne(Stream& stream, Message message) {
    stream.next(message.data);
  }
  ROS_DECLARE_ALLINONE_SERIALIZER
};

template <std::size_t N>
struct Serializer<lagometer::ros1::Fixed<N>> {
  template <typename Stream, typename Message>
  static void allInOne(Stream& stream, Message message) {
    stream.next(message.data);
  }
  ROS_DECLARE_ALLINONE_SERIALIZER
};

}  // namespace ros::serialization
