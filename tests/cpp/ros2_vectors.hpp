// SPDX-License-Identifier: Apache-2.0
// Messages of ROS 2 in CDR, written down by hand from their IDL and the rules of CDR version 1, little-endian: a number
// lies at a multiple of its size, counted from the begin; a string is its length with the zero at its end (u32), then
// both; a sequence is its length (u32), then its elements. Gaps are zero. No code of the adapters takes part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lagometer/adapter.h"

namespace lagometer::test {

using Octets = std::vector<uint8_t>;

/// Octets from hexadecimal digits; what is no digit only parts them.
inline Octets from_hex(std::string_view text) {
  const std::string_view digits = "0123456789ABCDEF";
  Octets octets;
  bool half = false;
  for (const char character : text) {
    const size_t value = digits.find(character);
    if (value == std::string_view::npos) continue;
    if (half)
      octets.back() = static_cast<uint8_t>(octets.back() << 4U | value);
    else
      octets.push_back(static_cast<uint8_t>(value));
    half = !half;
  }
  return octets;
}

inline Octets joined(Octets first, const Octets& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// So many octets that begin at 0x80 and count up.
inline Octets counted(size_t bytes) {
  Octets octets;
  for (size_t at = 0; at < bytes; ++at) octets.push_back(static_cast<uint8_t>(0x80 + at));
  return octets;
}

inline std::string text_of_32() { return "0123456789abcdefghijklmnopqrstuv"; }

/// String_ with the text of 32 characters.
inline Octets string_vector() {
  return from_hex(
      "21000000"                             // 33
      "30313233 34353637 38396162 63646566"  // 0123456789abcdef
      "6768696A 6B6C6D6E 6F707172 73747576"  // ghijklmnopqrstuv
      "00");
}

/// Image_ with the 12 octets counted(12): 3 rows of 4.
inline Octets image_vector() {
  return joined(from_hex("00000000 00000000"                    //  0 header.stamp
                         "0A000000 6C61676F6D65746572 00 0000"  //  8 header.frame_id "lagometer", gap to 24
                         "03000000"                             // 24 height
                         "04000000"                             // 28 width
                         "06000000 6D6F6E6F38 00"               // 32 encoding "mono8"
                         "00 00"                                // 42 is_bigendian, gap to 44
                         "04000000"                             // 44 step
                         "0C000000"),                           // 48 length of data
                counted(12));                                   // 52
}

/// Imu_ with that text as frame_id, and the 37 numbers 1.0 to 37.0.
inline Octets imu_vector() {
  Octets octets = joined(from_hex("00000000 00000000"), string_vector());  // 8 + 37
  octets.resize(48, 0);                                                    // the gap before a number of 8 octets
  for (uint64_t number = 1; number <= 37; ++number) {
    // IEEE 754: the exponent of the highest bit, biased by 1023, in 11 bits; what follows that bit, in 52.
    uint64_t exponent = 0;
    while (number >> (exponent + 1) != 0) ++exponent;
    const uint64_t bits = (exponent + 1023) << 52U | (number - (uint64_t{1} << exponent)) << (52U - exponent);
    for (unsigned at = 0; at < 8; ++at) octets.push_back(static_cast<uint8_t>(bits >> (8 * at)));
  }
  return octets;
}

/// PointCloud2_ with the 32 octets counted(32): 2 points.
inline Octets points_vector() {
  Octets octets =
      joined(from_hex("00000000 00000000"                                //   0 header.stamp
                      "0A000000 6C61676F6D65746572 00 0000"              //   8 header.frame_id, gap to 24
                      "01000000"                                         //  24 height
                      "02000000"                                         //  28 width
                      "04000000"                                         //  32 length of fields
                      "02000000 78 00 0000 00000000 07 000000 01000000"  //  36 x: name, offset, datatype, count
                      "02000000 79 00 0000 04000000 07 000000 01000000"  //  56 y
                      "02000000 7A 00 0000 08000000 07 000000 01000000"  //  76 z
                      "0A000000 696E74656E73697479 00 0000"              //  96 intensity: name, gap to 112
                      "0C000000 07 000000 01000000"                      // 112 its offset, datatype, count
                      "00 000000"                                        // 124 is_bigendian, gap to 128
                      "10000000"                                         // 128 point_step
                      "20000000"                                         // 132 row_step
                      "20000000"),                                       // 136 length of data
             counted(32));                                               // 140
  octets.push_back(0);                                                   // 172 is_dense
  return octets;
}

/// Fills what a message shows, one region after the other.
inline void put(const lagometer_region* regions, uint32_t count, const Octets& payload) {
  size_t from = 0;
  for (uint32_t region = 0; region < count; ++region) {
    for (uint64_t at = 0; at < regions[region].size; ++at) regions[region].data[at] = payload.at(from++);
  }
}

/// What a message shows, one region after the other.
inline Octets got(const lagometer_region* regions, uint32_t count) {
  Octets octets;
  for (uint32_t region = 0; region < count; ++region) {
    octets.insert(octets.end(), regions[region].data, regions[region].data + regions[region].size);
  }
  return octets;
}

/// A message's payload in the vectors above, and what it is as a whole.
struct Vector {
  const char* type;
  Octets payload;
  Octets cdr;
};

inline std::vector<Vector> all_vectors() {
  const std::string text = text_of_32();
  const Octets characters(text.begin(), text.end());
  const Octets imu = imu_vector();
  return {{"string", characters, string_vector()},
          {"Image", counted(12), image_vector()},
          {"Imu", joined(characters, {imu.begin() + 48, imu.end()}), imu},
          {"PointCloud2", counted(32), points_vector()}};
}

}  // namespace lagometer::test
