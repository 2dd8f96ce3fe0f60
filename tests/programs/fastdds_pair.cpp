// SPDX-License-Identifier: Apache-2.0
// A publisher or a subscriber as a user of Fast DDS writes one; it knows nothing of lagometer.
//   fastdds_pair publish COUNT PERIOD_MS BYTES [async: and with a time] (8 bytes or more) · fastdds_pair subscribe
//   COUNT [collections | instances]
// Each ends when it has sent or taken COUNT messages. A message begins with the time, as a std_msgs/Header does.
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#ifdef POOLED  // as a program of Fast DDS 2.14, by way of fastdds_pooled.cpp
#include "fastdds_pooled.hpp"
#endif

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;
using Bytes = std::vector<unsigned char>;

class BytesType : public TopicDataType {
 public:
  BytesType() {
    setName("Bytes");
    m_typeSize = 1 << 20;
    m_isGetKeyDefined = false;
  }
  bool serialize(void* data, SerializedPayload_t* payload) override {
    const Bytes& bytes = *static_cast<Bytes*>(data);
    payload->encapsulation = CDR_LE;
    std::memcpy(payload->data, "\0\1\0\0", 4);
    std::memcpy(payload->data + 4, bytes.data(), bytes.size());
    payload->length = static_cast<uint32_t>(bytes.size() + 4);
    return true;
  }
  bool deserialize(SerializedPayload_t* payload, void* data) override {
    static_cast<Bytes*>(data)->assign(payload->data + 4, payload->data + payload->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size() + 4); };
  }
  void* createData() override { return new Bytes; }
  void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
  bool getKey(void*, InstanceHandle_t*, bool) override { return false; }
};

int publish(Publisher* publisher, Topic* topic, int count, int period_ms, size_t size, bool is_async) {
  DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
  qos.publish_mode().kind = is_async ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
  qos.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;  // the reader may find us later than we it
  qos.history().kind = KEEP_ALL_HISTORY_QOS;
#ifdef POOLED
  const StatusMask all = StatusMask::all();
  std::shared_ptr<void> pool;
  auto* const writer = static_cast<DataWriter*>(create_pooled_writer(publisher, topic, &qos, nullptr, &all, &pool));
#else
  DataWriter* const writer = publisher->create_datawriter(topic, qos);
#endif
  for (PublicationMatchedStatus status; status.current_count == 0;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    writer->get_publication_matched_status(status);
  }
  Bytes bytes(size);
  for (int number = 0; number < count; ++number) {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint32_t stamp[] = {static_cast<uint32_t>(now.tv_sec), static_cast<uint32_t>(now.tv_nsec)};
    std::memcpy(bytes.data(), stamp, sizeof stamp);
    // Also as rmw_fastrtps_cpp does since Jazzy: with a time of its own.
    const eprosima::fastrtps::Time_t time(static_cast<int32_t>(stamp[0]), stamp[1]);
    const bool is_written =
        is_async ? writer->write_w_timestamp(&bytes, InstanceHandle_t(), time) == ReturnCode_t::RETCODE_OK
                 : writer->write(&bytes);
    if (!is_written) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(period_ms));
  }
  writer->wait_for_acknowledgments({10, 0});
  return 0;
}

/// Takes what is there, in collections: of the whole topic, or of its first instance.
int take_some(DataReader* reader, bool by_instance) {
  LoanableSequence<Bytes> data;
  SampleInfoSeq infos;
  const auto take = [&] {
    return by_instance ? reader->take_next_instance(data, infos, 8) : reader->take(data, infos, 8);
  };
  int taken = 0;
  while (take() == ReturnCode_t::RETCODE_OK) {
    for (int at = 0; at < infos.length(); ++at) taken += infos[at].valid_data;
    reader->return_loan(data, infos);
  }
  return taken;
}

int subscribe(Subscriber* subscriber, Topic* topic, int count, const std::string& how) {
  DataReaderQos qos = DATAREADER_QOS_DEFAULT;
  qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
  qos.history().kind = KEEP_ALL_HISTORY_QOS;
#ifdef POOLED
  const StatusMask all = StatusMask::all();
  std::shared_ptr<void> pool;
  TopicDescription* const description = topic;
  auto* const reader =
      static_cast<DataReader*>(create_pooled_reader(subscriber, description, &qos, nullptr, &all, &pool));
#else
  DataReader* const reader = subscriber->create_datareader(topic, qos);
#endif
  WaitSet waitset;
  reader->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
  waitset.attach_condition(reader->get_statuscondition());
  for (int taken = 0; taken < count;) {
    ConditionSeq active;
    if (waitset.wait(active, {20, 0}) != ReturnCode_t::RETCODE_OK) return 1;
    if (!how.empty()) {
      taken += take_some(reader, how == "instances");
    } else {
      Bytes bytes;
      SampleInfo info;
      while (reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK) taken += info.valid_data;
    }
  }
  return 0;
}

int main(int count, char** words) {
  DomainParticipant* const participant =
      DomainParticipantFactory::get_instance()->create_participant(0, PARTICIPANT_QOS_DEFAULT);
  TypeSupport type(new BytesType);
  type.register_type(participant);
  Topic* const topic = participant->create_topic("rt/numbers", type.get_type_name(), TOPIC_QOS_DEFAULT);
  const int messages = std::atoi(words[2]);
  if (std::string(words[1]) == "publish")
    return publish(participant->create_publisher(PUBLISHER_QOS_DEFAULT), topic, messages, std::atoi(words[3]),
                   static_cast<size_t>(std::atoi(words[4])), count > 5);
  return subscribe(participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT), topic, messages, count > 3 ? words[3] : "");
}
