// SPDX-License-Identifier: Apache-2.0
// Functions of Cyclone DDS and Fast DDS that programs other than ours use to create topics, writers and readers:
// records their names once, and their QoS. Reads from the libraries' objects only what these functions get, and what
// the libraries' own functions return.
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "declaration.hpp"
#include "journal.hpp"
#include "layouts.hpp"
#include "next.hpp"

namespace lagometer::probes {
namespace {

template <typename Function>
Function* find(void* caller, const char* name) noexcept {
  return reinterpret_cast<Function*>(function_of(caller, name));
}

/// The QoS that Cyclone DDS reports for one of its writers or readers; nothing if a function is missing.
void declare_qos(Declaration& declaration, void* caller, int32_t endpoint) noexcept {
  auto* const create = find<void*()>(caller, "dds_create_qos");
  auto* const destroy = find<void(void*)>(caller, "dds_delete_qos");
  auto* const get = find<int32_t(int32_t, void*)>(caller, "dds_get_qos");
  auto* const reliability = find<bool(const void*, int32_t*, int64_t*)>(caller, "dds_qget_reliability");
  auto* const history = find<bool(const void*, int32_t*, int32_t*)>(caller, "dds_qget_history");
  auto* const durability = find<bool(const void*, int32_t*)>(caller, "dds_qget_durability");
  for (const bool is_there : {create != nullptr, destroy != nullptr, get != nullptr, reliability != nullptr,
                              history != nullptr, durability != nullptr})
    if (!is_there) return;
  void* const qos = create();
  int32_t reliable = 0;
  int32_t keeps = 0;
  int32_t depth = 0;
  int32_t durable = 0;
  int64_t blocks_ns = 0;
  if (get(endpoint, qos) == 0 && reliability(qos, &reliable, &blocks_ns) && history(qos, &keeps, &depth) &&
      durability(qos, &durable))
    declaration.qos({reliable == 1, keeps == 1, depth, static_cast<uint32_t>(durable)});
  destroy(qos);
}

/// What Cyclone DDS reports for one of its writers or readers.
void declare(const Entered& entered, void* caller, Call call, int32_t endpoint, int32_t topic) noexcept {
  Declaration declaration;
  std::array<uint8_t, 16> guid{};
  auto* const get_guid = find<int32_t(int32_t, void*)>(caller, "dds_get_guid");
  if (get_guid != nullptr && get_guid(endpoint, guid.data()) == 0) declaration.guid(guid);
  std::array<char, kTextMax> text{};
  uint8_t number = 0;
  for (const char* const name : {"dds_get_name", "dds_get_type_name"}) {
    auto* const get = find<int32_t(int32_t, char*, size_t)>(caller, name);
    if (get != nullptr && get(topic, text.data(), text.size()) >= 0)
      declaration.text(number, text.data(), strnlen(text.data(), text.size()));
    ++number;
  }
  declare_qos(declaration, caller, endpoint);
  declaration.write(entered, call, static_cast<uint32_t>(endpoint), 0);
}

/// The functions of a Fast DDS writer or reader, and where in its QoS each policy is.
struct FastSide {
  const char* guid_function;
  const char* qos_function;
  FastQosLayout qos;
};

Qos qos_at(const uint8_t* qos, const FastQosLayout& layout) noexcept {
  constexpr uint8_t kReliable = 2;
  int32_t depth = 0;
  std::memcpy(&depth, qos + layout.depth_at, sizeof depth);
  return {qos[layout.reliability_at] == kReliable, qos[layout.history_at] == 1, depth, qos[layout.durability_at]};
}

/// The same for Fast DDS; topic: as in `declare_topic`.
void declare(const Entered& entered, void* caller, Call call, const FastSide& side, void* endpoint,
             void* topic) noexcept {
  Declaration declaration;
  auto* const get_guid = find<const uint8_t*(const void*)>(caller, side.guid_function);
  if (get_guid != nullptr) declaration.guid(std::span<const uint8_t, 16>(get_guid(endpoint), 16));
  auto* const get_qos = find<const uint8_t*(const void*)>(caller, side.qos_function);
  if (get_qos != nullptr) declaration.qos(qos_at(get_qos(endpoint), side.qos));
  declaration.write(entered, call, reinterpret_cast<uint64_t>(endpoint), reinterpret_cast<uint64_t>(topic));
}

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)

// --- Cyclone DDS ---

using Create = int32_t(int32_t, int32_t, const void*, const void*);

LAGOMETER_PROBE int32_t dds_create_writer(int32_t parent, int32_t topic, const void* qos, const void* listener) {
  static constinit NextOfCaller next("dds_create_writer");
  Entered entered;
  const int32_t made = reinterpret_cast<Create*>(next.get(LAGOMETER_CALLER))(parent, topic, qos, listener);
  entered.left();
  if (made > 0 && records_program()) declare(entered, LAGOMETER_CALLER, Call::declare_writer, made, topic);
  return made;
}

LAGOMETER_PROBE int32_t dds_create_reader(int32_t parent, int32_t topic, const void* qos, const void* listener) {
  static constinit NextOfCaller next("dds_create_reader");
  Entered entered;
  const int32_t made = reinterpret_cast<Create*>(next.get(LAGOMETER_CALLER))(parent, topic, qos, listener);
  entered.left();
  if (made > 0 && records_program()) declare(entered, LAGOMETER_CALLER, Call::declare_reader, made, topic);
  return made;
}

// --- Fast DDS: texts are std::string, with which both sides were compiled ---

#define LAGOMETER_DDS "_ZN8eprosima7fastdds3dds"
#define LAGOMETER_STRING "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define LAGOMETER_CREATE_TOPIC                                        \
  LAGOMETER_DDS "17DomainParticipant12create_topicE" LAGOMETER_STRING \
                "SA_RKNS1_8TopicQosEPNS1_13TopicListenerERKNS1_10StatusMaskE"
#define LAGOMETER_CREATE_WRITER \
  LAGOMETER_DDS                 \
  "9Publisher17create_datawriterEPNS1_5TopicERKNS1_13DataWriterQosEPNS1_18DataWriterListenerERKNS1_10StatusMaskE"
#define LAGOMETER_CREATE_READER                                                    \
  LAGOMETER_DDS                                                                    \
  "10Subscriber17create_datareaderEPNS1_16TopicDescriptionERKNS1_13DataReaderQosE" \
  "PNS1_18DataReaderListenerERKNS1_10StatusMaskE"
// The last argument of both in later versions of Fast DDS 2, such as ROS 2 Jazzy's 2.14: a std::shared_ptr, of which
// the caller passes the address.
#define LAGOMETER_POOL "St10shared_ptrINS_8fastrtps4rtps12IPayloadPoolEE"

namespace {
constexpr FastSide kFastWriter{"_ZNK8eprosima7fastdds3dds10DataWriter4guidEv",
                               "_ZNK8eprosima7fastdds3dds10DataWriter7get_qosEv", kFastWriterQos};
constexpr FastSide kFastReader{"_ZNK8eprosima7fastdds3dds10DataReader4guidEv",
                               "_ZNK8eprosima7fastdds3dds10DataReader7get_qosEv", kFastReaderQos};
}  // namespace

using FastCreateTopic = void*(void*, const std::string*, const std::string*, const void*, void*, const void*);

namespace {

/// Creates a writer or a reader by the library's own function, and declares it. more: that function's other arguments.
template <typename... More>
void* create_fast(NextOfCaller& next, void* caller, Call call, const FastSide& side, void* parent, void* topic,
                  More... more) {
  Entered entered;
  auto* const create = reinterpret_cast<void* (*)(void*, void*, More...)>(next.get(caller));
  void* const made = create(parent, topic, more...);
  entered.left();
  if (made != nullptr && records_program()) declare(entered, caller, call, side, made, topic);
  return made;
}

}  // namespace

LAGOMETER_PROBE void* fast_create_topic(void* participant, const std::string* name, const std::string* type,
                                        const void* qos, void* listener,
                                        const void* mask) __asm__(LAGOMETER_CREATE_TOPIC);
LAGOMETER_PROBE void* fast_create_writer(void* publisher, void* topic, const void* qos, void* listener,
                                         const void* mask) __asm__(LAGOMETER_CREATE_WRITER);
LAGOMETER_PROBE void* fast_create_reader(void* subscriber, void* topic, const void* qos, void* listener,
                                         const void* mask) __asm__(LAGOMETER_CREATE_READER);
LAGOMETER_PROBE void* fast_create_pooled_writer(void* publisher, void* topic, const void* qos, void* listener,
                                                const void* mask,
                                                void* pool) __asm__(LAGOMETER_CREATE_WRITER LAGOMETER_POOL);
LAGOMETER_PROBE void* fast_create_pooled_reader(void* subscriber, void* topic, const void* qos, void* listener,
                                                const void* mask,
                                                void* pool) __asm__(LAGOMETER_CREATE_READER LAGOMETER_POOL);

void* fast_create_topic(void* participant, const std::string* name, const std::string* type, const void* qos,
                        void* listener, const void* mask) {
  static constinit NextOfCaller next(LAGOMETER_CREATE_TOPIC);
  Entered entered;
  auto* const create = reinterpret_cast<FastCreateTopic*>(next.get(LAGOMETER_CALLER));
  void* const made = create(participant, name, type, qos, listener, mask);
  entered.left();
  if (made == nullptr || !records_program()) return made;
  Declaration declaration;
  declaration.text(0, name->data(), name->size());
  declaration.text(1, type->data(), type->size());
  declaration.write(entered, Call::declare_topic, reinterpret_cast<uint64_t>(made), 0);
  return made;
}

void* fast_create_writer(void* publisher, void* topic, const void* qos, void* listener, const void* mask) {
  static constinit NextOfCaller next(LAGOMETER_CREATE_WRITER);
  return create_fast(next, LAGOMETER_CALLER, Call::declare_writer, kFastWriter, publisher, topic, qos, listener, mask);
}

void* fast_create_reader(void* subscriber, void* topic, const void* qos, void* listener, const void* mask) {
  static constinit NextOfCaller next(LAGOMETER_CREATE_READER);
  return create_fast(next, LAGOMETER_CALLER, Call::declare_reader, kFastReader, subscriber, topic, qos, listener, mask);
}

void* fast_create_pooled_writer(void* publisher, void* topic, const void* qos, void* listener, const void* mask,
                                void* pool) {
  static constinit NextOfCaller next(LAGOMETER_CREATE_WRITER LAGOMETER_POOL);
  return create_fast(next, LAGOMETER_CALLER, Call::declare_writer, kFastWriter, publisher, topic, qos, listener, mask,
                     pool);
}

void* fast_create_pooled_reader(void* subscriber, void* topic, const void* qos, void* listener, const void* mask,
                                void* pool) {
  static constinit NextOfCaller next(LAGOMETER_CREATE_READER LAGOMETER_POOL);
  return create_fast(next, LAGOMETER_CALLER, Call::declare_reader, kFastReader, subscriber, topic, qos, listener, mask,
                     pool);
}
