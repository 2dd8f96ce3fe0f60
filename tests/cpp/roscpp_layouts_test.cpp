// SPDX-License-Identifier: Apache-2.0
// What the probe reads of roscpp's structures lies where it thinks.
#include <gtest/gtest.h>
#include <ros/advertise_options.h>
#include <ros/publisher.h>
#include <ros/serialized_message.h>
#include <ros/subscribe_options.h>

#include <cstddef>
#include <cstring>

#include "layouts.hpp"

namespace lagometer::probes {
namespace {

#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // of classes that are no plain structures; compilers do it

TEST(Layouts, AreThoseOfRoscppsMessages) {
  const boost::shared_array<uint8_t> buffer(new uint8_t[5]);
  const ros::SerializedMessage message(buffer, 5);
  const auto* const at = reinterpret_cast<const uint8_t*>(&message);
  const uint8_t* begin = nullptr;
  std::memcpy(&begin, at + RoscppLayout::kBufferAt, sizeof begin);
  EXPECT_EQ(begin, buffer.get());
  EXPECT_EQ(offsetof(ros::SerializedMessage, num_bytes), size_t{RoscppLayout::kBytesAt});
  EXPECT_EQ(offsetof(ros::SerializedMessage, message), size_t{RoscppLayout::kObjectAt});
}

TEST(Layouts, AreThoseOfRoscppsPublishersAndOptions) {
  EXPECT_EQ(sizeof(ros::Publisher), 2 * sizeof(void*));  // a shared pointer
  EXPECT_EQ(RoscppLayout::kImplementationAt, 0);
  EXPECT_EQ(offsetof(ros::AdvertiseOptions, queue_size), size_t{RoscppLayout::kAdvertisedDepthAt});
  EXPECT_EQ(offsetof(ros::SubscribeOptions, datatype), size_t{RoscppLayout::kSubscribedTypeAt});
}

}  // namespace
}  // namespace lagometer::probes
