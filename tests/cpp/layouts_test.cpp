// SPDX-License-Identifier: Apache-2.0
// What the probe reads of other libraries' structures lies where it thinks.
#include <dds/dds.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>

// After Fast DDS, whose names its macros would replace.
#include <dds/ddsi/ddsi_serdata.h>

#include "layouts.hpp"

namespace lagometer::probes {
namespace {

#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of a class that is no plain structure; compilers do it

TEST(Layouts, AreThoseOfCycloneDds) {
  EXPECT_EQ(sizeof(dds_sample_info_t), size_t{CycloneLayout::kInfoBytes});
  EXPECT_EQ(offsetof(dds_sample_info_t, valid_data), size_t{CycloneLayout::kValidAt});
  EXPECT_EQ(offsetof(dds_sample_info_t, source_timestamp), size_t{CycloneLayout::kSourceTimeAt});
  EXPECT_EQ(offsetof(dds_sample_info_t, publication_handle), size_t{CycloneLayout::kWriterAt});
  EXPECT_EQ(offsetof(dds_builtintopic_endpoint_t, key), 0U);
  EXPECT_EQ(offsetof(ddsi_serdata, timestamp), size_t{CycloneLayout::kForwardedTimeAt});
}

TEST(Layouts, AreThoseOfFastDds) {
  using eprosima::fastdds::dds::SampleInfo;
  EXPECT_EQ(offsetof(SampleInfo, source_timestamp), size_t{FastLayout::kSourceTimeAt});
  EXPECT_EQ(offsetof(SampleInfo, valid_data), size_t{FastLayout::kValidAt});
  SampleInfo info;
  info.source_timestamp.from_ns(7'000'000'009);
  EXPECT_EQ(offsetof(SampleInfo, sample_identity), size_t{FastLayout::kWriterAt});
  eprosima::fastrtps::rtps::GUID_t guid;
  guid.guidPrefix.value[11] = 3;
  guid.entityId.value[3] = 4;
  info.sample_identity.writer_guid(guid);
  const auto* const at = reinterpret_cast<const uint8_t*>(&info);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(at + FastLayout::kSourceTimeAt), 7);
  EXPECT_EQ(*reinterpret_cast<const uint32_t*>(at + FastLayout::kNanosecondsAt), 9U);
  EXPECT_EQ(at[FastLayout::kWriterAt + 11], 3);
  EXPECT_EQ(at[FastLayout::kWriterAt + 15], 4);
}

TEST(Layouts, AreThoseOfTimesThatAreGivenToIt) {
  const eprosima::fastrtps::Time_t time(7, 9);
  const auto* at = reinterpret_cast<const uint8_t*>(&time);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(at), 7);
  EXPECT_EQ(*reinterpret_cast<const uint32_t*>(at + FastLayout::kGivenNanosecondsAt), 9U);
  const eprosima::fastrtps::rtps::Time_t other(time);
  at = reinterpret_cast<const uint8_t*>(&other);
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(at), 7);
  EXPECT_EQ(*reinterpret_cast<const uint32_t*>(at + FastLayout::kGivenRtpsNanosecondsAt), 9U);
}

template <typename Qos>
void expect_layout(const FastQosLayout& layout) {
  const Qos qos;
  const auto* const at = reinterpret_cast<const uint8_t*>(&qos);
  const auto offset_of = [at](const auto& policy) { return reinterpret_cast<const uint8_t*>(&policy) - at; };
  EXPECT_EQ(offset_of(qos.reliability().kind), layout.reliability_at);
  EXPECT_EQ(offset_of(qos.history().kind), layout.history_at);
  EXPECT_EQ(offset_of(qos.history().depth), layout.depth_at);
  EXPECT_EQ(offset_of(qos.durability().kind), layout.durability_at);
  static_assert(sizeof qos.reliability().kind == 1 && sizeof qos.history().kind == 1);
}

TEST(Layouts, AreThoseOfItsQos) {
  expect_layout<eprosima::fastdds::dds::DataWriterQos>(kFastWriterQos);
  expect_layout<eprosima::fastdds::dds::DataReaderQos>(kFastReaderQos);
}

TEST(Layouts, AreThoseOfItsCollections) {
  using namespace eprosima::fastdds::dds;
  LoanableSequence<int> numbers;
  numbers.length(3);
  numbers[1] = 5;
  const auto* const at = reinterpret_cast<const uint8_t*>(static_cast<LoanableCollection*>(&numbers));
  EXPECT_EQ(*reinterpret_cast<const int32_t*>(at + FastLayout::kLengthAt), 3);
  const int* const* const elements = *reinterpret_cast<const int* const* const*>(at + FastLayout::kElementsAt);
  EXPECT_EQ(*elements[1], 5);
}

}  // namespace
}  // namespace lagometer::probes
