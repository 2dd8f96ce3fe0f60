// SPDX-License-Identifier: Apache-2.0
// Cyclone DDS makes of a message of ROS 2, by the description that the adapter gives it, just the octets that its IDL
// asks for, and of those octets the message.
#include <dds/ddsi/ddsi_cdrstream.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "messages.hpp"
#include "ros2_vectors.hpp"

namespace lagometer::cyclonedds {
namespace {

using test::Octets;
using test::Vector;

constexpr uint32_t kCdrVersion = 1;

std::unique_ptr<Message> message_for(const Vector& vector, uint64_t bytes_max) {
  switch (ros2::message_of(vector.type).value()) {
    case ros2::Message::string:
      return std::make_unique<StringMessage>(bytes_max);
    case ros2::Message::image:
      return std::make_unique<ImageMessage>(bytes_max);
    case ros2::Message::imu:
      return std::make_unique<ImuMessage>();
    case ros2::Message::point_cloud:
      return std::make_unique<PointCloudMessage>(bytes_max);
  }
  throw std::logic_error("no such message");
}

const dds_topic_descriptor_t& descriptor_for(const Vector& vector) {
  return descriptor_of(ros2::message_of(vector.type).value());
}

Octets serialised(Message& message, const uint32_t* operations) {
  dds_ostreamLE_t stream;
  dds_ostreamLE_init(&stream, 0, kCdrVersion);
  dds_stream_writeLE(&stream, static_cast<const char*>(message.sample()), operations);
  Octets octets(stream.x.m_buffer, stream.x.m_buffer + stream.x.m_index);
  dds_ostreamLE_fini(&stream);
  return octets;
}

TEST(CycloneMessages, AreTheOctetsOfTheirIdl) {
  for (const Vector& vector : test::all_vectors()) {
    const auto message = message_for(vector, vector.payload.size());
    lagometer_region regions[LAGOMETER_REGIONS_MAX];
    const uint32_t count = message->shape(vector.payload.size(), regions);
    test::put(regions, count, vector.payload);
    EXPECT_EQ(serialised(*message, descriptor_for(vector).m_ops), vector.cdr) << vector.type;
  }
}

TEST(CycloneMessages, AreReadFromThem) {
  for (const Vector& vector : test::all_vectors()) {
    const auto message = message_for(vector, 1000);
    for (int again = 0; again < 2; ++again) {
      dds_istream_t stream;
      dds_istream_init(&stream, static_cast<uint32_t>(vector.cdr.size()), vector.cdr.data(), kCdrVersion);
      dds_stream_read(&stream, static_cast<char*>(message->sample()), descriptor_for(vector).m_ops);
      EXPECT_EQ(stream.m_index, vector.cdr.size()) << vector.type;
      dds_istream_fini(&stream);
      lagometer_region regions[LAGOMETER_REGIONS_MAX];
      const uint32_t count = message->show(regions);
      EXPECT_EQ(test::got(regions, count), vector.payload) << vector.type;
      EXPECT_EQ(serialised(*message, descriptor_for(vector).m_ops), vector.cdr) << vector.type;
    }
  }
}

TEST(CycloneMessages, StayTextWhateverSizesFollowEachOther) {
  StringMessage message(100);
  lagometer_region regions[LAGOMETER_REGIONS_MAX];
  for (const uint64_t bytes : {uint64_t{32}, uint64_t{100}, uint64_t{50}, uint64_t{99}, uint64_t{100}}) {
    ASSERT_EQ(message.shape(bytes, regions), 1U);
    EXPECT_EQ(regions[0].size, bytes);
    EXPECT_EQ(std::string(static_cast<RosString*>(message.sample())->data), std::string(bytes, ros2::kFiller));
  }
}

TEST(CycloneMessages, AreDescribedWhole) {
  for (const Vector& vector : test::all_vectors()) {
    const dds_topic_descriptor_t& descriptor = descriptor_for(vector);
    EXPECT_EQ(dds_stream_minimum_xcdr_version(descriptor.m_ops), kCdrVersion) << vector.type;
    EXPECT_EQ(descriptor.m_nkeys, 0U);
  }
}

TEST(ImageSize, IsTheSquarestOfJustSoManyPixels) {
  for (uint64_t bytes = 1; bytes < 5000; ++bytes) {
    const ros2::ImageSize size = ros2::image_size(bytes);
    ASSERT_EQ(uint64_t{size.height} * size.width, bytes);
    ASSERT_LE(size.height, size.width);
    for (uint64_t higher = uint64_t{size.height} + 1; higher * higher <= bytes; ++higher) {
      ASSERT_NE(bytes % higher, 0U) << bytes;
    }
  }
  EXPECT_EQ(ros2::image_size(1U << 20U).height, 1024U);
  EXPECT_EQ(ros2::image_size(1U << 30U).width, 32768U);
}

}  // namespace
}  // namespace lagometer::cyclonedds
