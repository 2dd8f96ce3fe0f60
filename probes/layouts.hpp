// SPDX-License-Identifier: Apache-2.0
// Offsets of the numbers that a probe reads in other libraries' structures. tests/cpp/layouts_test.cpp checks them
// against the libraries' headers.
#pragma once

#include <cstdint>
#include <cstring>

namespace lagometer::probes {

/// A number in a foreign structure, at this offset.
template <typename Number>
Number read_at(const void* structure, int64_t at) noexcept {
  Number number{};
  std::memcpy(&number, static_cast<const uint8_t*>(structure) + at, sizeof number);
  return number;
}

/// Cyclone DDS: dds_sample_info_t, and ddsi_serdata, a serialised message; dds_builtintopic_endpoint_t begins with the
/// GUID.
struct CycloneLayout {
  static constexpr int64_t kInfoBytes = 64;
  static constexpr int64_t kValidAt = 12;          // bool: there is data
  static constexpr int64_t kSourceTimeAt = 16;     // int64_t, ns since 1970
  static constexpr int64_t kWriterAt = 32;         // uint64_t: the writer's number in this process
  static constexpr int64_t kForwardedTimeAt = 32;  // int64_t as well, in ddsi_serdata
};

/// Fast DDS 2: offsets of the policies in DataWriterQos or DataReaderQos. Each kind is one byte, the depth int32_t.
struct FastQosLayout {
  int64_t reliability_at;
  int64_t history_at;
  int64_t depth_at;
  int64_t durability_at;
};
constexpr FastQosLayout kFastWriterQos{242, 314, 316, 26};
constexpr FastQosLayout kFastReaderQos{186, 258, 260, 26};

/// Fast DDS 2: SampleInfo, its Time_t, and LoanableCollection, whose first member is a pointer to its functions.
struct FastLayout {
  static constexpr int64_t kSourceTimeAt = 28;  // int32_t, s since 1970
  static constexpr int64_t kNanosecondsAt = kSourceTimeAt + 8;
  static constexpr int64_t kValidAt = 86;
  static constexpr int64_t kWriterAt = 88;               // the GUID
  static constexpr int64_t kLengthAt = 12;               // int32_t, in the collection
  static constexpr int64_t kElementsAt = 16;             // void**
  static constexpr int64_t kGivenNanosecondsAt = 4;      // uint32_t, after int32_t seconds: fastrtps::Time_t
  static constexpr int64_t kGivenRtpsNanosecondsAt = 8;  // likewise: fastrtps::rtps::Time_t
};

/// roscpp: SerializedMessage, Publisher, AdvertiseOptions and SubscribeOptions.
struct RoscppLayout {
  static constexpr int64_t kBufferAt = 0;            // uint8_t*
  static constexpr int64_t kBytesAt = 16;            // size_t
  static constexpr int64_t kObjectAt = 32;           // a pointer
  static constexpr int64_t kImplementationAt = 0;    // a pointer, which copies of a publisher share
  static constexpr int64_t kAdvertisedDepthAt = 32;  // uint32_t
  static constexpr int64_t kSubscribedTypeAt = 72;   // std::string
};

}  // namespace lagometer::probes
