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
#include "layer_notes.hpp"

namespace lagometer::ros1 {

/// When roscpp had a message serialised or deserialised. It stays with the message: roscpp deserialises on the thread
/// that serves the callback queue, once for all subscribers of a process, which then get the same object.
struct Note {
  bool wanted = false;  // otherwise no clock is read
  LayerNotes::Note work{};

  /// Null if that layer has not been passed; a message that was not copied has a note of neither.
  [[nodiscard]] const LayerNotes::Note* of(uint32_t layer) const noexcept {
    return work.begin.layer == layer && work.end.time_ns != 0 ? &work : nullptr;
  }
};

/// A message with such a note. To roscpp it is what it derives from: the same name, checksum and bytes.
template <typename Message>
struct Noted : Message {
  mutable Note note;  // serialising gets a message that is const
};

/// For type "bytes".
using Bytes = Noted<std_msgs::UInt8MultiArray>;

/// For type "fixed": what gencpp generates for a file lagometer/msg/FixedN.msg with the one line "uint8[N] data".
template <std::size_t N>
struct FixedMessage {
  FixedMessage() : data() { data.assign(0); }
  boost::array<uint8_t, N> data;
};
template <std::size_t N>
using Fixed = Noted<FixedMessage<N>>;

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
inline lagometer_region resized(std_msgs::UInt8MultiArray& message, uint64_t bytes) {
  message.data.resize(bytes);
  return {message.data.data(), bytes};
}
inline lagometer_region resized(ServiceBytes& message, uint64_t bytes) {
  message.data.resize(bytes);
  return {message.data.data(), bytes};
}
template <std::size_t N>
lagometer_region resized(FixedMessage<N>& message, uint64_t) {
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
struct IsFixedSize<lagometer::ros1::FixedMessage<N>> : TrueType {};
template <std::size_t N>
struct IsFixedSize<const lagometer::ros1::FixedMessage<N>> : TrueType {};
template <std::size_t N>
struct IsMessage<lagometer::ros1::FixedMessage<N>> : TrueType {};
template <std::size_t N>
struct IsMessage<const lagometer::ros1::FixedMessage<N>> : TrueType {};

template <std::size_t N>
struct MD5Sum<lagometer::ros1::FixedMessage<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::md5sum; }
  static const char* value(const lagometer::ros1::FixedMessage<N>&) { return value(); }
};
template <std::size_t N>
struct DataType<lagometer::ros1::FixedMessage<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::datatype; }
  static const char* value(const lagometer::ros1::FixedMessage<N>&) { return value(); }
};
template <std::size_t N>
struct Definition<lagometer::ros1::FixedMessage<N>> {
  static const char* value() { return lagometer::ros1::FixedNames<N>::definition; }
  static const char* value(const lagometer::ros1::FixedMessage<N>&) { return value(); }
};

template <typename Message>
struct IsFixedSize<lagometer::ros1::Noted<Message>> : IsFixedSize<Message> {};
template <typename Message>
struct IsFixedSize<const lagometer::ros1::Noted<Message>> : IsFixedSize<Message> {};
template <typename Message>
struct IsMessage<lagometer::ros1::Noted<Message>> : IsMessage<Message> {};
template <typename Message>
struct IsMessage<const lagometer::ros1::Noted<Message>> : IsMessage<Message> {};
template <typename Message>
struct MD5Sum<lagometer::ros1::Noted<Message>> : MD5Sum<Message> {};
template <typename Message>
struct DataType<lagometer::ros1::Noted<Message>> : DataType<Message> {};
template <typename Message>
struct Definition<lagometer::ros1::Noted<Message>> : Definition<Message> {};

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
struct Serializer<lagometer::ros1::FixedMessage<N>> {
  template <typename Stream, typename Message>
  static void allInOne(Stream& stream, Message message) {
    stream.next(message.data);
  }
  ROS_DECLARE_ALLINONE_SERIALIZER
};

/// Notes when it is called. Serialising begins with the question for the length: roscpp then allocates the buffer.
template <typename Message>
struct Serializer<lagometer::ros1::Noted<Message>> {
  using Noted = lagometer::ros1::Noted<Message>;

  static uint32_t serializedLength(const Noted& message) {
    if (message.note.wanted) begin(message, LAGOMETER_LAYER_SERIALISE);
    return Serializer<Message>::serializedLength(static_cast<const Message&>(message));
  }
  template <typename Stream>
  static void write(Stream& stream, const Noted& message) {
    Serializer<Message>::write(stream, static_cast<const Message&>(message));
    if (message.note.wanted) end(message, LAGOMETER_LAYER_SERIALISE);
  }
  template <typename Stream>
  static void read(Stream& stream, Noted& message) {
    if (message.note.wanted) begin(message, LAGOMETER_LAYER_DESERIALISE);
    Serializer<Message>::read(stream, static_cast<Message&>(message));
    if (message.note.wanted) end(message, LAGOMETER_LAYER_DESERIALISE);
  }

 private:
  static void begin(const Noted& message, uint32_t layer) {
    message.note.work = {&message, lagometer::stamp_of(layer), {}};
  }
  static void end(const Noted& message, uint32_t layer) {
    message.note.work.end = lagometer::stamp_of(layer | LAGOMETER_LAYER_END);
  }
};

}  // namespace ros::serialization
