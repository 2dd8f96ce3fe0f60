// SPDX-License-Identifier: Apache-2.0
// Functions of Cyclone DDS and Fast DDS that applications use to write, take and wait. This file includes none of their
// headers: the caller of these functions brings its own library. Arguments are passed on unchanged: references and
// pointers are the same, and the small classes that these functions take and return are passed as the numbers they
// hold.
#include <array>
#include <cstdint>

#include "journal.hpp"
#include "layouts.hpp"
#include "next.hpp"
#include "writers.hpp"

namespace lagometer::probes {
namespace {

constexpr int64_t kNoMessage = INT64_MIN;  // a state change of a writer or similar

/// Records a call, and when each message that it took was written. If there are more than fit into one call's record,
/// records it several times.
template <typename Times>
void note_with_times(const Entered& entered, Call call, const CallRecord& record, const Times& times) noexcept {
  constexpr int64_t kTimesAtOnce = 15;
  std::array<KeyRecord, kTimesAtOnce> keys;
  const int64_t count = times.count(record.result);
  int64_t next = 0;
  do {
    size_t used = 0;
    for (; next < count && used < keys.size(); ++next) {
      const int64_t time_ns = times.at(next);
      if (time_ns == kNoMessage) continue;
      keys[used] = {};
      keys[used].kind = static_cast<uint8_t>(KeyKind::taken);
      keys[used].stream = kStreamUnknown;
      keys[used].number = time_ns;
      times.writer_of(next, keys[used++]);
    }
    entered.write(call, record, {keys.data(), used});
  } while (next < count);
}

/// Nothing is taken. given_ns: the source time that the application gave; 0: it gave none.
struct NoTimes {
  int64_t given_ns = 0;
  static int64_t count(int64_t) noexcept { return 0; }
  static int64_t at(int64_t) noexcept { return 0; }
  static void writer_of(int64_t, KeyRecord&) noexcept {}
};

/// A Fast DDS time that an application gave, with its nanoseconds at this offset.
NoTimes given_at(const void* time, int64_t nanoseconds_at) noexcept {
  constexpr int64_t kNs = 1'000'000'000;
  if (!is_on()) return {};
  return {read_at<int32_t>(time, 0) * kNs + read_at<uint32_t>(time, nanoseconds_at)};
}

/// Reads an array of dds_sample_info_t. caller: whose library the reader is of.
struct CycloneTimes {
  const void* infos;
  int32_t reader;
  void* caller;
  static int64_t count(int64_t result) noexcept { return result; }
  [[nodiscard]] int64_t at(int64_t index) const noexcept {
    const int64_t begin = index * CycloneLayout::kInfoBytes;
    if (read_at<uint8_t>(infos, begin + CycloneLayout::kValidAt) == 0) return kNoMessage;
    return read_at<int64_t>(infos, begin + CycloneLayout::kSourceTimeAt);
  }
  void writer_of(int64_t index, KeyRecord& key) const noexcept {
    const auto number = read_at<uint64_t>(infos, index * CycloneLayout::kInfoBytes + CycloneLayout::kWriterAt);
    put_cyclone_writer(caller, reader, number, key);
  }
};

CycloneTimes cyclone_times(const void* infos, int32_t reader, void* caller) noexcept { return {infos, reader, caller}; }

int64_t fast_time_of(const void* info) noexcept {
  constexpr int64_t kNs = 1'000'000'000;
  if (read_at<uint8_t>(info, FastLayout::kValidAt) == 0) return kNoMessage;
  return read_at<int32_t>(info, FastLayout::kSourceTimeAt) * kNs + read_at<uint32_t>(info, FastLayout::kNanosecondsAt);
}

struct FastTime {
  const void* info;
  static int64_t count(int64_t) noexcept { return 1; }
  [[nodiscard]] int64_t at(int64_t) const noexcept { return fast_time_of(info); }
  void writer_of(int64_t, KeyRecord& key) const noexcept {
    put_guid(static_cast<const uint8_t*>(info) + FastLayout::kWriterAt, key);
  }
};

/// Reads a collection of pointers to SampleInfo.
struct FastTimes {
  const void* infos;
  [[nodiscard]] int64_t count(int64_t) const noexcept { return read_at<int32_t>(infos, FastLayout::kLengthAt); }
  [[nodiscard]] int64_t at(int64_t index) const noexcept { return fast_time_of(info(index)); }
  void writer_of(int64_t index, KeyRecord& key) const noexcept {
    put_guid(static_cast<const uint8_t*>(info(index)) + FastLayout::kWriterAt, key);
  }

 private:
  [[nodiscard]] const void* info(int64_t index) const noexcept {
    return read_at<const void* const*>(infos, FastLayout::kElementsAt)[index];
  }
};

uint64_t number_of(int32_t entity) noexcept { return static_cast<uint32_t>(entity); }
uint64_t number_of(const void* entity) noexcept { return reinterpret_cast<uint64_t>(entity); }

/// Wraps the middleware's function that `caller` means to call. object: the writer, reader or waitset. written_if:
/// whether the result means that something happened that is worth recording. times: a program's messages, in which
/// `note_taken` finds when each was written.
template <typename Function, typename Times, typename... Arguments>
auto call_through(NextOfCaller& next, void* caller, Call call, uint64_t object, bool (*written_if)(int64_t),
                  const Times& times, Arguments... arguments) noexcept(false) {
  auto* const function = reinterpret_cast<Function*>(next.get(caller));
  if (!is_on()) return function(arguments...);
  Entered entered;
  const auto result = function(arguments...);
  if (!written_if(static_cast<int64_t>(result))) return result;
  entered.left();
  CallRecord record{};
  record.descriptor = -1;
  record.result = static_cast<int64_t>(result);
  record.object = object;
  if constexpr (requires { times.given_ns; }) record.connection = static_cast<uint64_t>(times.given_ns);
  if (follows_programs())
    note_with_times(entered, call, record, times);
  else
    entered.write(call, record);
  return result;
}

// A write that the middleware refuses (a queue is full, and stays so for as long as a writer may wait) does not count.
bool if_accepted(int64_t result) { return result >= 0; }
bool if_true(int64_t result) { return result != 0; }
bool if_some(int64_t result) { return result > 0; }
bool if_ok(int64_t result) { return result == 0; }

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)
#define LAGOMETER_THROUGH(name, call, written_if, times, type, object, ...) \
  static constinit NextOfCaller next(name);                                 \
  return call_through<type>(next, LAGOMETER_CALLER, call, number_of(object), written_if, times, object, __VA_ARGS__)

#define LAGOMETER_TIMES(infos) cyclone_times(infos, reader, LAGOMETER_CALLER)

// --- Cyclone DDS: dds_entity_t and dds_return_t are 32 bits wide, times and durations 64 ---

using Write = int32_t(int32_t, const void*);
using WriteAt = int32_t(int32_t, const void*, int64_t);
using Take = int32_t(int32_t, void**, void*, size_t, uint32_t);
using TakeLoan = int32_t(int32_t, void**, void*, uint32_t);
using TakeMask = int32_t(int32_t, void**, void*, size_t, uint32_t, uint32_t);
using TakeLoanMask = int32_t(int32_t, void**, void*, uint32_t, uint32_t);
using TakeNext = int32_t(int32_t, void**, void*);
using TakeCollected = int32_t(int32_t, uint32_t, uint64_t, uint32_t, void*, void*);
using WaitFor = int32_t(int32_t, intptr_t*, size_t, int64_t);

LAGOMETER_PROBE int32_t dds_write(int32_t writer, const void* data) {
  LAGOMETER_THROUGH("dds_write", Call::api_write, if_accepted, NoTimes{}, Write, writer, data);
}
LAGOMETER_PROBE int32_t dds_write_ts(int32_t writer, const void* data, int64_t time) {
  LAGOMETER_THROUGH("dds_write_ts", Call::api_write, if_accepted, NoTimes{time}, WriteAt, writer, data, time);
}
LAGOMETER_PROBE int32_t dds_writecdr(int32_t writer, void* data) {
  LAGOMETER_THROUGH("dds_writecdr", Call::api_write, if_accepted, NoTimes{}, Write, writer, data);
}
/// The time of the write is in the message: rmw_cyclonedds_cpp passes serialised and loaned messages through this.
LAGOMETER_PROBE int32_t dds_forwardcdr(int32_t writer, void* data) {
  const NoTimes times{is_on() && data != nullptr ? read_at<int64_t>(data, CycloneLayout::kForwardedTimeAt) : 0};
  LAGOMETER_THROUGH("dds_forwardcdr", Call::api_write, if_accepted, times, Write, writer, data);
}
LAGOMETER_PROBE int32_t dds_take(int32_t reader, void** data, void* infos, size_t size, uint32_t most) {
  LAGOMETER_THROUGH("dds_take", Call::api_take, if_some, LAGOMETER_TIMES(infos), Take, reader, data, infos, size, most);
}
LAGOMETER_PROBE int32_t dds_take_wl(int32_t reader, void** data, void* infos, uint32_t most) {
  LAGOMETER_THROUGH("dds_take_wl", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeLoan, reader, data, infos,
                    most);
}
LAGOMETER_PROBE int32_t dds_take_mask(int32_t reader, void** data, void* infos, size_t size, uint32_t most,
                                      uint32_t mask) {
  LAGOMETER_THROUGH("dds_take_mask", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeMask, reader, data, infos,
                    size, most, mask);
}
LAGOMETER_PROBE int32_t dds_take_mask_wl(int32_t reader, void** data, void* infos, uint32_t most, uint32_t mask) {
  LAGOMETER_THROUGH("dds_take_mask_wl", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeLoanMask, reader, data,
                    infos, most, mask);
}
LAGOMETER_PROBE int32_t dds_take_next(int32_t reader, void** data, void* info) {
  LAGOMETER_THROUGH("dds_take_next", Call::api_take, if_some, LAGOMETER_TIMES(info), TakeNext, reader, data, info);
}
/// Of Cyclone DDS 11, whose Python package takes through it; a function of the caller's gets the times of the messages.
LAGOMETER_PROBE int32_t dds_take_with_collector(int32_t reader, uint32_t most, uint64_t instance, uint32_t mask,
                                                void* collect, void* given) {
  LAGOMETER_THROUGH("dds_take_with_collector", Call::api_take, if_some, NoTimes{}, TakeCollected, reader, most,
                    instance, mask, collect, given);
}
LAGOMETER_PROBE int32_t dds_takecdr(int32_t reader, void** data, uint32_t most, void* infos, uint32_t mask) {
  using TakeSerialised = int32_t(int32_t, void**, uint32_t, void*, uint32_t);
  LAGOMETER_THROUGH("dds_takecdr", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeSerialised, reader, data, most,
                    infos, mask);
}
LAGOMETER_PROBE int32_t dds_take_next_wl(int32_t reader, void** data, void* info) {
  LAGOMETER_THROUGH("dds_take_next_wl", Call::api_take, if_some, LAGOMETER_TIMES(info), TakeNext, reader, data, info);
}
// Of one instance.
LAGOMETER_PROBE int32_t dds_take_instance(int32_t reader, void** data, void* infos, size_t size, uint32_t most,
                                          uint64_t instance) {
  using TakeInstance = int32_t(int32_t, void**, void*, size_t, uint32_t, uint64_t);
  LAGOMETER_THROUGH("dds_take_instance", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeInstance, reader, data,
                    infos, size, most, instance);
}
LAGOMETER_PROBE int32_t dds_take_instance_wl(int32_t reader, void** data, void* infos, uint32_t most,
                                             uint64_t instance) {
  using TakeInstanceLoan = int32_t(int32_t, void**, void*, uint32_t, uint64_t);
  LAGOMETER_THROUGH("dds_take_instance_wl", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeInstanceLoan, reader,
                    data, infos, most, instance);
}
LAGOMETER_PROBE int32_t dds_take_instance_mask(int32_t reader, void** data, void* infos, size_t size, uint32_t most,
                                               uint64_t instance, uint32_t mask) {
  using TakeInstanceMask = int32_t(int32_t, void**, void*, size_t, uint32_t, uint64_t, uint32_t);
  LAGOMETER_THROUGH("dds_take_instance_mask", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeInstanceMask, reader,
                    data, infos, size, most, instance, mask);
}
LAGOMETER_PROBE int32_t dds_take_instance_mask_wl(int32_t reader, void** data, void* infos, uint32_t most,
                                                  uint64_t instance, uint32_t mask) {
  using TakeInstanceLoanMask = int32_t(int32_t, void**, void*, uint32_t, uint64_t, uint32_t);
  LAGOMETER_THROUGH("dds_take_instance_mask_wl", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeInstanceLoanMask,
                    reader, data, infos, most, instance, mask);
}
LAGOMETER_PROBE int32_t dds_takecdr_instance(int32_t reader, void** data, uint32_t most, void* infos, uint64_t instance,
                                             uint32_t mask) {
  using TakeSerialisedInstance = int32_t(int32_t, void**, uint32_t, void*, uint64_t, uint32_t);
  LAGOMETER_THROUGH("dds_takecdr_instance", Call::api_take, if_some, LAGOMETER_TIMES(infos), TakeSerialisedInstance,
                    reader, data, most, infos, instance, mask);
}
LAGOMETER_PROBE int32_t dds_waitset_wait(int32_t set, intptr_t* found, size_t size, int64_t longest) {
  LAGOMETER_THROUGH("dds_waitset_wait", Call::api_wait, if_some, NoTimes{}, WaitFor, set, found, size, longest);
}
LAGOMETER_PROBE int32_t dds_waitset_wait_until(int32_t set, intptr_t* found, size_t size, int64_t until) {
  LAGOMETER_THROUGH("dds_waitset_wait_until", Call::api_wait, if_some, NoTimes{}, WaitFor, set, found, size, until);
}

// --- Fast DDS 2: ReturnCode_t has 32 bits, Time_t 64; a copy in a register and its address both have 64 ---

using FastWrite = bool(void*, void*);
using FastWriteHandle = uint32_t(void*, void*, const void*);
using FastWriteParameters = bool(void*, void*, void*);
using FastWriteAt = uint32_t(void*, void*, const void*, const void*);
using FastTake = uint32_t(void*, void*, void*, int32_t, uint16_t, uint16_t, uint16_t);
using FastTakeInstance = uint32_t(void*, void*, void*, int32_t, const void*, uint16_t, uint16_t, uint16_t);
using FastTakeNext = uint32_t(void*, void*, void*);
using FastWait = uint32_t(const void*, void*, uint64_t);

// Their symbols. Each function below gets the name that callers look for.
#define LAGOMETER_DDS "_ZN8eprosima7fastdds3dds"
#define LAGOMETER_WRITE LAGOMETER_DDS "10DataWriter5writeEPv"
#define LAGOMETER_WRITE_HANDLE LAGOMETER_WRITE "RKNS_8fastrtps4rtps16InstanceHandle_tE"
#define LAGOMETER_WRITE_PARAMETERS LAGOMETER_WRITE "RNS_8fastrtps4rtps11WriteParamsE"
#define LAGOMETER_WRITE_AT LAGOMETER_DDS "10DataWriter17write_w_timestampEPvRKNS_8fastrtps4rtps16InstanceHandle_tE"
#define LAGOMETER_WRITE_AT_TIME LAGOMETER_WRITE_AT "RKNS4_6Time_tE"
#define LAGOMETER_WRITE_AT_RTPS_TIME LAGOMETER_WRITE_AT "RKNS5_6Time_tE"
#define LAGOMETER_TAKE                                                                    \
  LAGOMETER_DDS                                                                           \
  "10DataReader4takeERNS1_18LoanableCollectionERNS1_16LoanableSequenceINS1_10SampleInfoE" \
  "St17integral_constantIbLb1EEEEittt"
#define LAGOMETER_OF_INSTANCE                                                                               \
  "ERNS1_18LoanableCollectionERNS1_16LoanableSequenceINS1_10SampleInfoESt17integral_constantIbLb1EEEEiRKNS" \
  "_8fastrtps4rtps16InstanceHandle_tEttt"
#define LAGOMETER_TAKE_INSTANCE LAGOMETER_DDS "10DataReader13take_instance" LAGOMETER_OF_INSTANCE
#define LAGOMETER_TAKE_NEXT_INSTANCE LAGOMETER_DDS "10DataReader18take_next_instance" LAGOMETER_OF_INSTANCE
#define LAGOMETER_TAKE_NEXT LAGOMETER_DDS "10DataReader16take_next_sampleEPvPNS1_10SampleInfoE"
#define LAGOMETER_WAIT "_ZNK8eprosima7fastdds3dds7WaitSet4waitERSt6vectorIPNS1_9ConditionESaIS5_EENS_8fastrtps6Time_tE"

LAGOMETER_PROBE bool fast_write(void* writer, void* data) __asm__(LAGOMETER_WRITE);
LAGOMETER_PROBE uint32_t fast_write_handle(void* writer, void* data,
                                           const void* handle) __asm__(LAGOMETER_WRITE_HANDLE);
LAGOMETER_PROBE bool fast_write_parameters(void* writer, void* data, void* given) __asm__(LAGOMETER_WRITE_PARAMETERS);
LAGOMETER_PROBE uint32_t fast_write_at(void* writer, void* data, const void* handle,
                                       const void* time) __asm__(LAGOMETER_WRITE_AT_TIME);
LAGOMETER_PROBE uint32_t fast_write_at_rtps(void* writer, void* data, const void* handle,
                                            const void* time) __asm__(LAGOMETER_WRITE_AT_RTPS_TIME);
LAGOMETER_PROBE uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t sample_states,
                                   uint16_t view_states, uint16_t instance_states) __asm__(LAGOMETER_TAKE);
LAGOMETER_PROBE uint32_t fast_take_instance(void* reader, void* data, void* infos, int32_t most, const void* instance,
                                            uint16_t sample_states, uint16_t view_states,
                                            uint16_t instance_states) __asm__(LAGOMETER_TAKE_INSTANCE);
LAGOMETER_PROBE uint32_t fast_take_next_instance(void* reader, void* data, void* infos, int32_t most,
                                                 const void* before, uint16_t sample_states, uint16_t view_states,
                                                 uint16_t instance_states) __asm__(LAGOMETER_TAKE_NEXT_INSTANCE);
LAGOMETER_PROBE uint32_t fast_take_next(void* reader, void* data, void* info) __asm__(LAGOMETER_TAKE_NEXT);
LAGOMETER_PROBE uint32_t fast_wait(const void* set, void* active, uint64_t longest) __asm__(LAGOMETER_WAIT);

bool fast_write(void* writer, void* data) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE, Call::api_write, if_true, NoTimes{}, FastWrite, writer, data);
}
uint32_t fast_write_handle(void* writer, void* data, const void* handle) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_HANDLE, Call::api_write, if_ok, NoTimes{}, FastWriteHandle, writer, data, handle);
}
bool fast_write_parameters(void* writer, void* data, void* given) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_PARAMETERS, Call::api_write, if_true, NoTimes{}, FastWriteParameters, writer, data,
                    given);
}
/// Since Jazzy, rmw_fastrtps_cpp publishes through this, with the time that it passes to ROS 2's trace functions.
uint32_t fast_write_at(void* writer, void* data, const void* handle, const void* time) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_AT_TIME, Call::api_write, if_ok, given_at(time, FastLayout::kGivenNanosecondsAt),
                    FastWriteAt, writer, data, handle, time);
}
uint32_t fast_write_at_rtps(void* writer, void* data, const void* handle, const void* time) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_AT_RTPS_TIME, Call::api_write, if_ok,
                    given_at(time, FastLayout::kGivenRtpsNanosecondsAt), FastWriteAt, writer, data, handle, time);
}
uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t sample_states, uint16_t view_states,
                   uint16_t instance_states) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE, Call::api_take, if_ok, FastTimes{infos}, FastTake, reader, data, infos, most,
                    sample_states, view_states, instance_states);
}
uint32_t fast_take_instance(void* reader, void* data, void* infos, int32_t most, const void* instance,
                            uint16_t sample_states, uint16_t view_states, uint16_t instance_states) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE_INSTANCE, Call::api_take, if_ok, FastTimes{infos}, FastTakeInstance, reader, data,
                    infos, most, instance, sample_states, view_states, instance_states);
}
uint32_t fast_take_next_instance(void* reader, void* data, void* infos, int32_t most, const void* before,
                                 uint16_t sample_states, uint16_t view_states, uint16_t instance_states) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE_NEXT_INSTANCE, Call::api_take, if_ok, FastTimes{infos}, FastTakeInstance, reader,
                    data, infos, most, before, sample_states, view_states, instance_states);
}
uint32_t fast_take_next(void* reader, void* data, void* info) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE_NEXT, Call::api_take, if_ok, FastTime{info}, FastTakeNext, reader, data, info);
}
uint32_t fast_wait(const void* set, void* active, uint64_t longest) {
  LAGOMETER_THROUGH(LAGOMETER_WAIT, Call::api_wait, if_ok, NoTimes{}, FastWait, set, active, longest);
}
