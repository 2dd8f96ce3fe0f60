// SPDX-License-Identifier: Apache-2.0
// Functions of Cyclone DDS and Fast DDS by which an application writes, takes and waits. No header of theirs is seen:
// whoever calls one of these brings its library along. What is handed on is handed on as it came: references and
// pointers are one, and the small classes that these functions take and return travel as the numbers that they hold.
#include <cstdint>
#include <utility>

#include "journal.hpp"
#include "next.hpp"

namespace lagometer::probes {
namespace {

/// In front of the function of the middleware that `caller` means. written_if: of the result, whether something was
/// done that is worth writing down.
template <typename Function, typename... Arguments>
auto call_through(NextOfCaller& next, void* caller, Call call, bool (*written_if)(int64_t),
                  Arguments... arguments) noexcept(false) {
  auto* const function = reinterpret_cast<Function*>(next.get(caller));
  if (!is_on()) return function(arguments...);
  Entered entered;
  const auto result = function(arguments...);
  if (!written_if(static_cast<int64_t>(result))) return result;
  entered.left();
  CallRecord record{};
  record.descriptor = -1;
  record.result = static_cast<int64_t>(result);
  entered.write(call, record);
  return result;
}

bool always(int64_t) { return true; }
bool if_some(int64_t result) { return result > 0; }
bool if_ok(int64_t result) { return result == 0; }

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)
#define LAGOMETER_THROUGH(name, call, written_if, type, ...) \
  static constinit NextOfCaller next(name);                  \
  return call_through<type>(next, LAGOMETER_CALLER, call, written_if, __VA_ARGS__)

// --- Cyclone DDS: dds_entity_t and dds_return_t are 32 bits wide, times and durations 64 ---

using Write = int32_t(int32_t, const void*);
using WriteAt = int32_t(int32_t, const void*, int64_t);
using Take = int32_t(int32_t, void**, void*, size_t, uint32_t);
using TakeLoan = int32_t(int32_t, void**, void*, uint32_t);
using TakeMask = int32_t(int32_t, void**, void*, size_t, uint32_t, uint32_t);
using TakeLoanMask = int32_t(int32_t, void**, void*, uint32_t, uint32_t);
using TakeNext = int32_t(int32_t, void**, void*);
using WaitFor = int32_t(int32_t, intptr_t*, size_t, int64_t);

LAGOMETER_PROBE int32_t dds_write(int32_t writer, const void* data) {
  LAGOMETER_THROUGH("dds_write", Call::api_write, always, Write, writer, data);
}
LAGOMETER_PROBE int32_t dds_write_ts(int32_t writer, const void* data, int64_t time) {
  LAGOMETER_THROUGH("dds_write_ts", Call::api_write, always, WriteAt, writer, data, time);
}
LAGOMETER_PROBE int32_t dds_writecdr(int32_t writer, void* data) {
  LAGOMETER_THROUGH("dds_writecdr", Call::api_write, always, Write, writer, data);
}
LAGOMETER_PROBE int32_t dds_take(int32_t reader, void** data, void* infos, size_t size, uint32_t most) {
  LAGOMETER_THROUGH("dds_take", Call::api_take, if_some, Take, reader, data, infos, size, most);
}
LAGOMETER_PROBE int32_t dds_take_wl(int32_t reader, void** data, void* infos, uint32_t most) {
  LAGOMETER_THROUGH("dds_take_wl", Call::api_take, if_some, TakeLoan, reader, data, infos, most);
}
LAGOMETER_PROBE int32_t dds_take_mask(int32_t reader, void** data, void* infos, size_t size, uint32_t most,
                                      uint32_t mask) {
  LAGOMETER_THROUGH("dds_take_mask", Call::api_take, if_some, TakeMask, reader, data, infos, size, most, mask);
}
LAGOMETER_PROBE int32_t dds_take_mask_wl(int32_t reader, void** data, void* infos, uint32_t most, uint32_t mask) {
  LAGOMETER_THROUGH("dds_take_mask_wl", Call::api_take, if_some, TakeLoanMask, reader, data, infos, most, mask);
}
LAGOMETER_PROBE int32_t dds_take_next(int32_t reader, void** data, void* info) {
  LAGOMETER_THROUGH("dds_take_next", Call::api_take, if_some, TakeNext, reader, data, info);
}
LAGOMETER_PROBE int32_t dds_takecdr(int32_t reader, void** data, uint32_t most, void* infos, uint32_t mask) {
  using TakeSerialised = int32_t(int32_t, void**, uint32_t, void*, uint32_t);
  LAGOMETER_THROUGH("dds_takecdr", Call::api_take, if_some, TakeSerialised, reader, data, most, infos, mask);
}
LAGOMETER_PROBE int32_t dds_waitset_wait(int32_t set, intptr_t* found, size_t size, int64_t longest) {
  LAGOMETER_THROUGH("dds_waitset_wait", Call::api_wait, if_some, WaitFor, set, found, size, longest);
}
LAGOMETER_PROBE int32_t dds_waitset_wait_until(int32_t set, intptr_t* found, size_t size, int64_t until) {
  LAGOMETER_THROUGH("dds_waitset_wait_until", Call::api_wait, if_some, WaitFor, set, found, size, until);
}

// --- Fast DDS 2: ReturnCode_t holds 32 bits; Time_t 64, and a copy in a register or its address are both 64 ---

using FastWrite = bool(void*, void*);
using FastWriteHandle = uint32_t(void*, void*, const void*);
using FastWriteParameters = bool(void*, void*, void*);
using FastTake = uint32_t(void*, void*, void*, int32_t, uint16_t, uint16_t, uint16_t);
using FastTakeNext = uint32_t(void*, void*, void*);
using FastWait = uint32_t(const void*, void*, uint64_t);

// Their symbols. A function below is given the name by which callers look for it.
#define LAGOMETER_DDS "_ZN8eprosima7fastdds3dds"
#define LAGOMETER_WRITE LAGOMETER_DDS "10DataWriter5writeEPv"
#define LAGOMETER_WRITE_HANDLE LAGOMETER_WRITE "RKNS_8fastrtps4rtps16InstanceHandle_tE"
#define LAGOMETER_WRITE_PARAMETERS LAGOMETER_WRITE "RNS_8fastrtps4rtps11WriteParamsE"
#define LAGOMETER_TAKE                                                                    \
  LAGOMETER_DDS                                                                           \
  "10DataReader4takeERNS1_18LoanableCollectionERNS1_16LoanableSequenceINS1_10SampleInfoE" \
  "St17integral_constantIbLb1EEEEittt"
#define LAGOMETER_TAKE_NEXT LAGOMETER_DDS "10DataReader16take_next_sampleEPvPNS1_10SampleInfoE"
#define LAGOMETER_WAIT "_ZNK8eprosima7fastdds3dds7WaitSet4waitERSt6vectorIPNS1_9ConditionESaIS5_EENS_8fastrtps6Time_tE"

LAGOMETER_PROBE bool fast_write(void* writer, void* data) __asm__(LAGOMETER_WRITE);
LAGOMETER_PROBE uint32_t fast_write_handle(void* writer, void* data,
                                           const void* handle) __asm__(LAGOMETER_WRITE_HANDLE);
LAGOMETER_PROBE bool fast_write_parameters(void* writer, void* data, void* given) __asm__(LAGOMETER_WRITE_PARAMETERS);
LAGOMETER_PROBE uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t sample_states,
                                   uint16_t view_states, uint16_t instance_states) __asm__(LAGOMETER_TAKE);
LAGOMETER_PROBE uint32_t fast_take_next(void* reader, void* data, void* info) __asm__(LAGOMETER_TAKE_NEXT);
LAGOMETER_PROBE uint32_t fast_wait(const void* set, void* active, uint64_t longest) __asm__(LAGOMETER_WAIT);

bool fast_write(void* writer, void* data) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE, Call::api_write, always, FastWrite, writer, data);
}
uint32_t fast_write_handle(void* writer, void* data, const void* handle) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_HANDLE, Call::api_write, always, FastWriteHandle, writer, data, handle);
}
bool fast_write_parameters(void* writer, void* data, void* given) {
  LAGOMETER_THROUGH(LAGOMETER_WRITE_PARAMETERS, Call::api_write, always, FastWriteParameters, writer, data, given);
}
uint32_t fast_take(void* reader, void* data, void* infos, int32_t most, uint16_t sample_states, uint16_t view_states,
                   uint16_t instance_states) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE, Call::api_take, if_ok, FastTake, reader, data, infos, most, sample_states,
                    view_states, instance_states);
}
uint32_t fast_take_next(void* reader, void* data, void* info) {
  LAGOMETER_THROUGH(LAGOMETER_TAKE_NEXT, Call::api_take, if_ok, FastTakeNext, reader, data, info);
}
uint32_t fast_wait(const void* set, void* active, uint64_t longest) {
  LAGOMETER_THROUGH(LAGOMETER_WAIT, Call::api_wait, if_ok, FastWait, set, active, longest);
}
