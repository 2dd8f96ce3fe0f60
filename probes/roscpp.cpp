// SPDX-License-Identifier: Apache-2.0
// Functions of roscpp, the client library of ROS 1, in programs other than ours. Its messages have no time stamp, so a
// message is followed by the address of its bytes: `publish` fills a buffer that `send` gets, and `recv` fills a buffer
// that the message's deserialiser gets. This file includes none of roscpp's headers; arguments are passed on unchanged.
#include "roscpp.hpp"

#include <atomic>
#include <cstdint>
#include <string>

#include "declaration.hpp"
#include "journal.hpp"
#include "layouts.hpp"
#include "next.hpp"

namespace lagometer::probes {
namespace {

std::atomic<bool> created{false};

/// What this thread is doing in roscpp.
struct Current {
  int64_t advertised_depth;       // of the queue of the publisher that is being created; -1: none
  const std::string* subscribed;  // the type of the subscriber that is being created; null: none
  uint64_t queue;                 // of the subscriber whose message is next; 0: none
};
thread_local Current current __attribute__((tls_model("initial-exec"))) = {-1, nullptr, 0};

/// Sets a value as long as a call lasts, however it ends.
template <typename Value>
class During {
 public:
  During(Value& place, Value value) noexcept : place_(place), before_(place) { place_ = value; }
  During(const During&) = delete;
  During& operator=(const During&) = delete;
  ~During() { place_ = before_; }

 private:
  Value& place_;
  Value before_;
};

const uint8_t* bytes_of(const void* object) noexcept { return static_cast<const uint8_t*>(object); }
uint64_t number_of(const void* object) noexcept { return reinterpret_cast<uint64_t>(object); }

/// Where the bytes of a ros::SerializedMessage lie, and how many there are; or where the message itself does, if it
/// stays within the process and is not serialised.
KeyRecord buffer_of(const void* message) noexcept {
  KeyRecord key{};
  key.kind = static_cast<uint8_t>(KeyKind::buffer);
  key.stream = kStreamUnknown;
  const auto buffer = read_at<uint64_t>(message, RoscppLayout::kBufferAt);
  key.number = static_cast<int64_t>(buffer != 0 ? buffer : read_at<uint64_t>(message, RoscppLayout::kObjectAt));
  key.first_fragment = buffer != 0 ? 0 : 1;
  key.payload_bytes = static_cast<uint32_t>(read_at<uint64_t>(message, RoscppLayout::kBytesAt));
  return key;
}

void note(const Entered& entered, Call call, uint64_t object, const void* message) noexcept {
  CallRecord record{};
  record.descriptor = -1;
  record.object = object;
  const KeyRecord key = buffer_of(message);
  entered.write(call, record, {&key, 1});
}

/// depth: 0 is a queue without a limit, less is not known.
void declare(Call call, uint64_t object, const std::string& topic, const std::string* type, int64_t depth,
             bool latched) noexcept {
  created.store(true, std::memory_order_relaxed);
  Entered entered;
  entered.left();
  Declaration declaration;
  declaration.text(0, topic.data(), topic.size());
  if (type != nullptr) declaration.text(1, type->data(), type->size());
  if (depth >= 0) declaration.qos({true, depth == 0, static_cast<int32_t>(depth), latched ? 1U : 0U});
  declaration.write(entered, call, object, 0);
}

void declare_publisher(const void* publisher, const std::string& topic, const std::string& type,
                       const bool* latched) noexcept {
  const int64_t depth = latched != nullptr ? current.advertised_depth : -1;
  const auto object = read_at<uint64_t>(publisher, RoscppLayout::kImplementationAt);
  declare(Call::declare_writer, object, topic, &type, depth, latched != nullptr && *latched);
}

/// Records that a subscriber's message was deserialised, when the call has returned.
class Taking {
 public:
  explicit Taking(const void* deserialiser) noexcept : deserialiser_(number_of(deserialiser)) {}
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;
  ~Taking() {
    if (!records_program() || current.queue == 0) return;
    entered_.left();
    CallRecord record{};
    record.descriptor = -1;
    record.object = current.queue;
    record.connection = deserialiser_;
    entered_.write(Call::api_take, record);
  }

 private:
  Entered entered_;
  uint64_t deserialiser_;
};

}  // namespace

/// A boost::shared_ptr as a result. It is no plain structure, so its caller has the memory for it, and it is passed on
/// without being copied or destroyed: neither is defined.
class Shared {
 public:
  Shared(const Shared&);
  Shared& operator=(const Shared&) = delete;
  ~Shared();

 private:
  void* object_;
  void* count_;
};

bool has_roscpp() noexcept { return created.load(std::memory_order_relaxed); }

}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)
#define LAGOMETER_STRING "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define LAGOMETER_CALLBACKS "RKN5boost10shared_ptrINS_19SubscriberCallbacksEEE"
#define LAGOMETER_ADVERTISE "_ZN3ros10NodeHandle9advertiseERNS_16AdvertiseOptionsE"
#define LAGOMETER_SUBSCRIBE "_ZN3ros12TopicManager9subscribeERKNS_16SubscribeOptionsE"
#define LAGOMETER_PUBLISHER "_ZN3ros9PublisherC1E" LAGOMETER_STRING "S8_S8_bRKNS_10NodeHandleE" LAGOMETER_CALLBACKS
#define LAGOMETER_OLD_PUBLISHER "_ZN3ros9PublisherC1E" LAGOMETER_STRING "S8_S8_RKNS_10NodeHandleE" LAGOMETER_CALLBACKS
#define LAGOMETER_PUBLISH "_ZNK3ros9Publisher7publishERKN5boost8functionIFNS_17SerializedMessageEvEEERS3_"
#define LAGOMETER_QUEUE "_ZN3ros17SubscriptionQueueC1E" LAGOMETER_STRING "ib"
#define LAGOMETER_QUEUE_CALL "_ZN3ros17SubscriptionQueue4callEv"
#define LAGOMETER_DESERIALISER                                                                               \
  "_ZN3ros19MessageDeserializerC1ERKN5boost10shared_ptrINS_26SubscriptionCallbackHelperEEERKNS_17Serialized" \
  "MessageERKNS2_ISt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESG_St4lessISG_ESaISt4pairIKSG_" \
  "SG_EEEEE"
#define LAGOMETER_DESERIALISE "_ZN3ros19MessageDeserializer11deserializeEv"

using Advertise = Shared(void*, void*);
using Subscribe = bool(void*, const void*);
using Publisher = void(void*, const std::string*, const std::string*, const std::string*, bool, const void*,
                       const void*);
using OldPublisher = void(void*, const std::string*, const std::string*, const std::string*, const void*, const void*);
using Publish = void(const void*, const void*, void*);
using Queue = void(void*, const std::string*, int32_t, bool);
using QueueCall = int32_t(void*);
using Deserialiser = void(void*, const void*, const void*, const void*);
using Deserialise = Shared(void*);

LAGOMETER_PROBE bool ros_subscribe(void* manager, const void* options) __asm__(LAGOMETER_SUBSCRIBE);
LAGOMETER_PROBE void ros_publisher(void* self, const std::string* topic, const std::string* sum,
                                   const std::string* type, bool latched, const void* node,
                                   const void* callbacks) __asm__(LAGOMETER_PUBLISHER);
LAGOMETER_PROBE void ros_old_publisher(void* self, const std::string* topic, const std::string* sum,
                                       const std::string* type, const void* node,
                                       const void* callbacks) __asm__(LAGOMETER_OLD_PUBLISHER);
LAGOMETER_PROBE void ros_publish(const void* publisher, const void* serialise,
                                 void* message) __asm__(LAGOMETER_PUBLISH);
LAGOMETER_PROBE void ros_queue(void* self, const std::string* topic, int32_t depth,
                               bool concurrent) __asm__(LAGOMETER_QUEUE);
LAGOMETER_PROBE int32_t ros_queue_call(void* queue) __asm__(LAGOMETER_QUEUE_CALL);
LAGOMETER_PROBE void ros_deserialiser(void* self, const void* helper, const void* message,
                                      const void* header) __asm__(LAGOMETER_DESERIALISER);
// These return a class, which a function of C does not.
__attribute__((visibility("default"))) Shared ros_advertise(void* node, void* options) __asm__(LAGOMETER_ADVERTISE);
__attribute__((visibility("default"))) Shared ros_deserialise(void* self) __asm__(LAGOMETER_DESERIALISE);

/// The result is a publisher, which holds a shared pointer and nothing else.
Shared ros_advertise(void* node, void* options) {
  static constinit NextOfProcess next(LAGOMETER_ADVERTISE);
  const int64_t depth = read_at<uint32_t>(options, RoscppLayout::kAdvertisedDepthAt);
  const During during(current.advertised_depth, depth);
  return reinterpret_cast<Advertise*>(next.need(LAGOMETER_CALLER))(node, options);
}

bool ros_subscribe(void* manager, const void* options) {
  static constinit NextOfProcess next(LAGOMETER_SUBSCRIBE);
  const auto* const type = reinterpret_cast<const std::string*>(bytes_of(options) + RoscppLayout::kSubscribedTypeAt);
  const During during(current.subscribed, type);
  return reinterpret_cast<Subscribe*>(next.need(LAGOMETER_CALLER))(manager, options);
}

void ros_publisher(void* self, const std::string* topic, const std::string* sum, const std::string* type, bool latched,
                   const void* node, const void* callbacks) {
  static constinit NextOfProcess next(LAGOMETER_PUBLISHER);
  reinterpret_cast<Publisher*>(next.need(LAGOMETER_CALLER))(self, topic, sum, type, latched, node, callbacks);
  if (records_program()) declare_publisher(self, *topic, *type, &latched);
}

/// Of ROS Melodic and before, which does not say here whether the publisher keeps its last message.
void ros_old_publisher(void* self, const std::string* topic, const std::string* sum, const std::string* type,
                       const void* node, const void* callbacks) {
  static constinit NextOfProcess next(LAGOMETER_OLD_PUBLISHER);
  reinterpret_cast<OldPublisher*>(next.need(LAGOMETER_CALLER))(self, topic, sum, type, node, callbacks);
  if (records_program()) declare_publisher(self, *topic, *type, nullptr);
}

void ros_publish(const void* publisher, const void* serialise, void* message) {
  static constinit NextOfProcess next(LAGOMETER_PUBLISH);
  auto* const publish = reinterpret_cast<Publish*>(next.need(LAGOMETER_CALLER));
  if (!records_program()) return publish(publisher, serialise, message);
  Entered entered;
  publish(publisher, serialise, message);
  entered.left();
  note(entered, Call::api_write, read_at<uint64_t>(publisher, RoscppLayout::kImplementationAt), message);
}

void ros_queue(void* self, const std::string* topic, int32_t depth, bool concurrent) {
  static constinit NextOfProcess next(LAGOMETER_QUEUE);
  reinterpret_cast<Queue*>(next.need(LAGOMETER_CALLER))(self, topic, depth, concurrent);
  if (records_program()) declare(Call::declare_reader, number_of(self), *topic, current.subscribed, depth, false);
}

int32_t ros_queue_call(void* queue) {
  static constinit NextOfProcess next(LAGOMETER_QUEUE_CALL);
  auto* const call = reinterpret_cast<QueueCall*>(next.need(LAGOMETER_CALLER));
  const During during(current.queue, number_of(queue));
  return call(queue);
}

void ros_deserialiser(void* self, const void* helper, const void* message, const void* header) {
  static constinit NextOfProcess next(LAGOMETER_DESERIALISER);
  auto* const construct = reinterpret_cast<Deserialiser*>(next.need(LAGOMETER_CALLER));
  if (!records_program()) return construct(self, helper, message, header);
  Entered entered;
  construct(self, helper, message, header);
  entered.left();
  note(entered, Call::ros1_received, number_of(self), message);
}

Shared ros_deserialise(void* self) {
  static constinit NextOfProcess next(LAGOMETER_DESERIALISE);
  auto* const deserialise = reinterpret_cast<Deserialise*>(next.need(LAGOMETER_CALLER));
  const Taking taking(self);
  return deserialise(self);
}
