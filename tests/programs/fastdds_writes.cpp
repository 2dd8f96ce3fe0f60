// SPDX-License-Identifier: Apache-2.0
// A library with the names of Fast DDS 2 by which one writes (-DLIBRARY), and a program that calls each of them twice:
// the first message is accepted, the second refused.
#include <cstdint>
#include <initializer_list>

namespace eprosima {
namespace fastrtps {
struct Time_t {
  int32_t seconds;
  uint32_t nanosec;
};
namespace rtps {
struct InstanceHandle_t {};
struct WriteParams {};
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
  bool write(void*);
  bool write(void*, fastrtps::rtps::WriteParams&);
  uint32_t write(void*, const fastrtps::rtps::InstanceHandle_t&);
  uint32_t write_w_timestamp(void*, const fastrtps::rtps::InstanceHandle_t&, const fastrtps::Time_t&);
  uint32_t write_w_timestamp(void*, const fastrtps::rtps::InstanceHandle_t&, const fastrtps::rtps::Time_t&);
};
}  // namespace dds
}  // namespace fastdds
}  // namespace eprosima

using namespace eprosima::fastrtps;

/// What a message's writing returns, and with which time.
struct Message {
  uint32_t result;
  uint32_t nanoseconds;
};

#ifdef LIBRARY
// As a compiler may leave the register of a result: where the bits of its type end, there is anything.
#define NAMED(name) __asm__("_ZN8eprosima7fastdds3dds10DataWriter" name)
#define WITH_HANDLE "EPvRKNS_8fastrtps4rtps16InstanceHandle_tE"
extern "C" {
uint64_t write(void* writer, const Message* message) NAMED("5writeEPv");
uint64_t write_with(void* writer, const Message* message, void*) NAMED("5writeEPvRNS_8fastrtps4rtps11WriteParamsE");
uint64_t write_of(void* writer, const Message* message, const void*) NAMED("5write" WITH_HANDLE);
uint64_t write_at(void* writer, const Message* message, const void*, const Time_t* time)
    NAMED("17write_w_timestamp" WITH_HANDLE "RKNS4_6Time_tE");
uint64_t write_at_rtps(void* writer, const Message* message, const void*, const rtps::Time_t* time)
    NAMED("17write_w_timestamp" WITH_HANDLE "RKNS5_6Time_tE");
}

static uint64_t truth(bool is_written) { return 0x1234567890abcd00 | (is_written ? 1 : 0); }
static uint64_t code(uint32_t result) { return 0x1234567800000000 | result; }

uint64_t write(void*, const Message* message) { return truth(message->result != 0); }
uint64_t write_with(void*, const Message* message, void*) { return truth(message->result != 0); }
uint64_t write_of(void*, const Message* message, const void*) { return code(message->result); }
uint64_t write_at(void*, const Message* message, const void*, const Time_t* time) {
  return code(time->nanosec == message->nanoseconds ? message->result : UINT32_MAX);
}
uint64_t write_at_rtps(void*, const Message* message, const void*, const rtps::Time_t* time) {
  return code(time->nanosec == message->nanoseconds ? message->result : UINT32_MAX);
}
#else
int main() {
  constexpr uint32_t kTimeout = 10;
  eprosima::fastdds::dds::DataWriter writer;
  const rtps::InstanceHandle_t handle;
  rtps::WriteParams parameters;
  for (const bool accepted : {true, false}) {
    Message told{accepted, 0}, coded{accepted ? 0 : kTimeout, 5}, later{accepted ? 0 : kTimeout, 6};
    if (writer.write(&told) != accepted) return 1;
    if (writer.write(&told, parameters) != accepted) return 2;
    if (writer.write(&coded, handle) != coded.result) return 3;
    if (writer.write_w_timestamp(&coded, handle, Time_t{1700000000, 5}) != coded.result) return 4;
    if (writer.write_w_timestamp(&later, handle, rtps::Time_t{1700000000, 77, 6}) != later.result) return 5;
  }
  return 0;
}
#endif
