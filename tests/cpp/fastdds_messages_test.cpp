// SPDX-License-Identifier: Apache-2.0
// The adapter for Fast DDS writes of a message of ROS 2 just the octets that its IDL asks for, reads them in either
// byte order, and believes nothing of octets that are cut or damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include "cdr.hpp"
#include "message_types.hpp"
#include "ros2_vectors.hpp"

namespace lagometer::fastdds {
namespace {

using test::Octets;
using test::Vector;

constexpr uint8_t kLittleEndian = 1;

/// A type with one of its messages.
class Subject {
 public:
  explicit Subject(const Vector& vector)
      : type_(make_type(ros2::message_of(vector.type).value())), sample_(type_->createData()) {}
  ~Subject() { type_->deleteData(sample_); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;

  [[nodiscard]] dds::TopicDataType& type() noexcept { return *type_; }
  [[nodiscard]] Message& message() noexcept { return *static_cast<Message*>(sample_); }

  /// Encapsulation and all.
  Octets serialised() {
    const uint32_t bytes = type_->getSerializedSizeProvider(sample_)();
    rtps::SerializedPayload_t payload(bytes);
    EXPECT_TRUE(type_->serialize(sample_, &payload));
    EXPECT_EQ(payload.length, bytes);
    rtps::SerializedPayload_t too_small(bytes - 1);
    EXPECT_FALSE(type_->serialize(sample_, &too_small));
    return {payload.data, payload.data + payload.length};
  }
  bool deserialise(const Octets& cdr, uint8_t encapsulation = kLittleEndian) {
    rtps::SerializedPayload_t payload(static_cast<uint32_t>(cdr.size()) + kEncapsulationBytes);
    std::memset(payload.data, 0, kEncapsulationBytes);
    payload.data[1] = encapsulation;
    if (!cdr.empty()) std::memcpy(payload.data + kEncapsulationBytes, cdr.data(), cdr.size());
    payload.length = payload.max_size;
    return type_->deserialize(&payload, sample_);
  }
  Octets shown() {
    lagometer_region regions[LAGOMETER_REGIONS_MAX];
    const uint32_t count = message().show(regions);
    return test::got(regions, count);
  }

 private:
  std::unique_ptr<dds::TopicDataType> type_;
  void* sample_;
};

Octets in_front(const Octets& cdr) { return test::joined({0, kLittleEndian, 0, 0}, cdr); }

TEST(FastMessages, AreTheOctetsOfTheirIdl) {
  for (const Vector& vector : test::all_vectors()) {
    Subject subject(vector);
    lagometer_region regions[LAGOMETER_REGIONS_MAX];
    const uint32_t count = subject.message().shape(vector.payload.size(), regions);
    test::put(regions, count, vector.payload);
    EXPECT_EQ(subject.serialised(), in_front(vector.cdr)) << vector.type;
    EXPECT_EQ(subject.type().getName(), std::string(ros2::type_name(ros2::message_of(vector.type).value())));
  }
}

TEST(FastMessages, AreReadFromThem) {
  for (const Vector& vector : test::all_vectors()) {
    Subject subject(vector);
    for (int again = 0; again < 2; ++again) {
      ASSERT_TRUE(subject.deserialise(vector.cdr)) << vector.type;
      EXPECT_EQ(subject.shown(), vector.payload) << vector.type;
      EXPECT_EQ(subject.serialised(), in_front(vector.cdr)) << vector.type;
    }
  }
}

TEST(FastMessages, AreReadInTheOtherByteOrder) {
  const std::vector<Vector> all = test::all_vectors();
  Subject image(all[1]);
  ASSERT_TRUE(image.deserialise(test::joined(test::from_hex("00000000 00000000"
                                                            "0000000A 6C61676F6D65746572 00 0000"
                                                            "00000003 00000004"
                                                            "00000006 6D6F6E6F38 00 00 00"
                                                            "00000004 0000000C"),
                                             test::counted(12)),
                                0));
  EXPECT_EQ(image.serialised(), in_front(all[1].cdr));
  Subject imu(all[2]);
  Octets cdr = all[2].cdr;
  std::reverse(cdr.begin() + 8, cdr.begin() + 12);  // the length of frame_id; the stamp is zero
  for (auto at = cdr.begin() + 48; at != cdr.end(); at += 8) std::reverse(at, at + 8);
  ASSERT_TRUE(imu.deserialise(cdr, 0));
  EXPECT_EQ(imu.serialised(), in_front(all[2].cdr));
}

TEST(FastMessages, AreNotReadFromLess) {
  for (const Vector& vector : test::all_vectors()) {
    Subject subject(vector);
    for (size_t bytes = 0; bytes < vector.cdr.size(); ++bytes) {
      EXPECT_FALSE(subject.deserialise({vector.cdr.begin(), vector.cdr.begin() + static_cast<std::ptrdiff_t>(bytes)}))
          << vector.type << ", " << bytes << " of " << vector.cdr.size();
    }
  }
}

// Whether it is refused or read as something else: nothing is read or written where it must not be (sanitizers look).
TEST(FastMessages, SurviveDamage) {
  std::mt19937 random(1);
  for (const Vector& vector : test::all_vectors()) {
    Subject subject(vector);
    for (int round = 0; round < 5'000; ++round) {
      Octets cdr = vector.cdr;
      for (size_t count = 1 + random() % 4; count > 0; --count) {
        cdr[random() % cdr.size()] = static_cast<uint8_t>(random());
      }
      if (subject.deserialise(cdr, static_cast<uint8_t>(random() & 1U))) {
        EXPECT_LE(subject.shown().size(), cdr.size());
      }
    }
    ASSERT_TRUE(subject.deserialise(vector.cdr));
    EXPECT_EQ(subject.shown(), vector.payload);
  }
}

TEST(FastMessages, StayTextWhateverSizesFollowEachOther) {
  StringMessage message;
  lagometer_region regions[LAGOMETER_REGIONS_MAX];
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{32}, uint64_t{100}, uint64_t{99}}) {
    ASSERT_EQ(message.shape(bytes, regions), 1U);
    EXPECT_EQ(test::got(regions, 1), Octets(bytes, static_cast<uint8_t>(ros2::kFiller)));
  }
}

TEST(FastBytes, IsASequenceOfOctets) {
  BytesType type;
  BytesMessage message;
  lagometer_region regions[LAGOMETER_REGIONS_MAX];
  test::put(regions, message.shape(20, regions), test::counted(20));
  rtps::SerializedPayload_t payload(100);
  ASSERT_TRUE(type.serialize(static_cast<Message*>(&message), &payload));
  EXPECT_EQ(Octets(payload.data, payload.data + payload.length),
            in_front(test::joined(test::from_hex("14000000"), test::counted(20))));
  BytesMessage read;
  ASSERT_TRUE(type.deserialize(&payload, static_cast<Message*>(&read)));
  EXPECT_EQ(read.data, test::counted(20));
  payload.length = 27;
  EXPECT_FALSE(type.deserialize(&payload, static_cast<Message*>(&read)));
}

}  // namespace
}  // namespace lagometer::fastdds
