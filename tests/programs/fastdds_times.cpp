// SPDX-License-Identifier: Apache-2.0
// A library with the names of Fast DDS 2 by which one writes with a time (-DLIBRARY), and a program that calls them.
#include <cstdint>

namespace eprosima {
namespace fastrtps {
struct Time_t {
  int32_t seconds;
  uint32_t nanosec;
};
namespace rtps {
struct InstanceHandle_t {};
struct Time_t {
  int32_t seconds;
  uint32_t fraction;
  uint32_t nanosec;
};
}  // namespace rtps
}  // namespace fastrtps
namespace fastdds {
namespace dds {
class DataWriter {
 public:
  uint32_t write_w_timestamp(void*, const fastrtps::rtps::InstanceHandle_t&, const fastrtps::Time_t&);
  uint32_t write_w_timestamp(void*, const fastrtps::rtps::InstanceHandle_t&, const fastrtps::rtps::Time_t&);
};
}  // namespace dds
}  // namespace fastdds
}  // namespace eprosima

using eprosima::fastdds::dds::DataWriter;
namespace fastrtps = eprosima::fastrtps;

#ifdef LIBRARY
uint32_t DataWriter::write_w_timestamp(void* data, const fastrtps::rtps::InstanceHandle_t&,
                                       const fastrtps::Time_t& time) {
  return *static_cast<uint32_t*>(data) + time.nanosec;
}
uint32_t DataWriter::write_w_timestamp(void* data, const fastrtps::rtps::InstanceHandle_t&,
                                       const fastrtps::rtps::Time_t& time) {
  return *static_cast<uint32_t*>(data) + time.nanosec;
}
#else
int main() {
  DataWriter writer;
  uint32_t data = 100;
  const fastrtps::rtps::InstanceHandle_t handle;
  if (writer.write_w_timestamp(&data, handle, fastrtps::Time_t{1700000000, 5}) != 105) return 1;
  if (writer.write_w_timestamp(&data, handle, fastrtps::rtps::Time_t{1700000000, 77, 6}) != 106) return 1;
  return 0;
}
#endif
