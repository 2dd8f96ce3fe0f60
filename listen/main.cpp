// SPDX-License-Identifier: Apache-2.0
// lagometer-listen DOMAIN TOPIC: subscribes to a topic of a running DDS system, whatever its type, and prints a line of
// JSON for each event (docs/PROTOCOL.md, "The listener"). Ends at the end of its standard input.
#include <poll.h>
#include <unistd.h>

#include <fastdds/rtps/writer/WriterDiscoveryInfo.h>
#include <array>
#include <charconv>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "raw_type.hpp"

namespace lagometer::listen {
namespace {

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::GUID_t;
using eprosima::fastrtps::rtps::WriterDiscoveryInfo;
using Json = nlohmann::json;

/// What a discovered writer of the topic offers.
struct Offer {
  std::string type;
  bool is_keyed = false, is_reliable = false, is_transient_local = false;
};

int64_t realtime_ns() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::string in_hexadecimal(const uint8_t* bytes, size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (size_t at = 0; at < size; ++at) {
    text += kDigits[bytes[at] >> 4U];
    text += kDigits[bytes[at] & 15U];
  }
  return text;
}

std::string text_of(const GUID_t& guid) {
  return in_hexadecimal(guid.guidPrefix.value, 12) + in_hexadecimal(guid.entityId.value, 4);
}

/// Prints one line; threads take turns.
void say(const Json& event) {
  static std::mutex turn;
  const std::string line = event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(turn);
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

/// Waits for the first writer of the topic, and collects the partitions of all; called by threads of Fast DDS.
class Discovery : public DomainParticipantListener {
 public:
  explicit Discovery(std::string topic) : topic_(std::move(topic)) {}

  void on_publisher_discovery(DomainParticipant*, WriterDiscoveryInfo&& found) override {
    if (found.status != WriterDiscoveryInfo::DISCOVERED_WRITER || found.info.topicName() != topic_) return;
    Offer offer{.type = found.info.typeName().to_string(),
                .is_keyed = found.info.topicKind() == eprosima::fastrtps::rtps::WITH_KEY,
                .is_reliable = found.info.m_qos.m_reliability.kind == RELIABLE_RELIABILITY_QOS,
                .is_transient_local = found.info.m_qos.m_durability.kind >= TRANSIENT_LOCAL_DURABILITY_QOS};
    const std::vector<std::string> named = found.info.m_qos.m_partition.names();
    const std::lock_guard lock(mutex_);
    partitions_.insert(named.begin(), named.end());
    if (named.empty()) partitions_.emplace();  // the default one
    if (!offer_) offer_ = std::move(offer);
    changed_.notify_all();
  }

  /// Null if none came within this time.
  std::optional<Offer> wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return offer_.has_value(); });
    return offer_;
  }

  /// The partitions in which writers write; the default one has an empty name.
  std::set<std::string> partitions() {
    const std::lock_guard lock(mutex_);
    return partitions_;
  }

 private:
  const std::string topic_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Offer> offer_;
  std::set<std::string> partitions_;
};

/// Prints what arrives; called by threads of Fast DDS.
class Ear : public DataReaderListener {
 public:
  void on_data_available(DataReader* reader) override {
    Raw raw;
    SampleInfo info;
    while (reader->take_next_sample(&raw, &info) == ReturnCode_t::RETCODE_OK) {
      const int64_t now_ns = realtime_ns();
      if (!info.valid_data) continue;
      const auto& number = info.sample_identity.sequence_number();
      say({{"event", "message"},
           {"writer", text_of(info.sample_identity.writer_guid())},
           {"sequence", (int64_t{number.high} << 32) + number.low},
           {"source_ns", info.source_timestamp.to_ns()},
           {"received_ns", now_ns},
           {"bytes", raw.bytes},
           {"head", in_hexadecimal(raw.head.data(), raw.head.size())}});
    }
  }
  void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override {
    say({{"event", "matched"}, {"writers", status.current_count}});
  }
  void on_sample_lost(DataReader*, const SampleLostStatus& status) override {
    say({{"event", "lost"}, {"messages", status.total_count}});
  }
};

/// Whether standard input ends within this time.
bool input_ends(int longest_ms) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  std::array<char, 256> ignored;
  return poll(&input, 1, longest_ms) > 0 && read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0;
}

/// Of a subscriber that hears writers in every partition: in the default one, whose name is empty, and in all others.
SubscriberQos in_every_partition() {
  SubscriberQos qos = SUBSCRIBER_QOS_DEFAULT;
  std::vector<std::string> names{"", "*"};
  qos.partition().names(names);
  return qos;
}

int fail(const std::string& reason) {
  say({{"event", "failed"}, {"reason", reason}});
  return 1;
}

int listen(uint32_t domain, const std::string& topic_name) {
  Discovery discovery(topic_name);
  DomainParticipantQos own = PARTICIPANT_QOS_DEFAULT;
  own.name("lagometer-listen");
  // Of the participant's events, only discovery goes to the listener.
  DomainParticipant* const participant =
      DomainParticipantFactory::get_instance()->create_participant(domain, own, &discovery, StatusMask::none());
  if (participant == nullptr) return fail("no participant can be created in domain " + std::to_string(domain));
  std::optional<Offer> offer;
  constexpr std::chrono::milliseconds kLook{50};
  while (!(offer = discovery.wait(kLook))) {
    if (input_ends(0)) return 0;
  }
  TypeSupport type(new RawType(offer->type, offer->is_keyed));
  Topic* const topic = type.register_type(participant) == ReturnCode_t::RETCODE_OK
                           ? participant->create_topic(topic_name, offer->type, TOPIC_QOS_DEFAULT)
                           : nullptr;
  Subscriber* const subscriber = participant->create_subscriber(in_every_partition());
  if (topic == nullptr || subscriber == nullptr) return fail("no reader can be made of type " + offer->type);
  DataReaderQos qos = DATAREADER_QOS_DEFAULT;
  qos.reliability().kind = offer->is_reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos.history().kind = KEEP_LAST_HISTORY_QOS;
  qos.history().depth = 1000;
  qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  std::set<std::string> partitions = discovery.partitions();
  say({{"event", "found"},
       {"type", offer->type},
       {"keyed", offer->is_keyed},
       {"reliable", offer->is_reliable},
       {"transient_local", offer->is_transient_local},
       {"partitions", partitions}});
  Ear ear;
  if (subscriber->create_datareader(topic, qos, &ear) == nullptr) return fail("the reader can't be created");
  while (!input_ends(static_cast<int>(kLook.count()))) {
    const std::set<std::string> now = discovery.partitions();
    if (now == partitions) continue;
    partitions = now;
    say({{"event", "partitions"}, {"partitions", partitions}});
  }
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
  return 0;
}

}  // namespace
}  // namespace lagometer::listen

int main(int count, char** words) {
  uint32_t domain = 0;
  const std::string_view given = count == 3 ? words[1] : "";
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), domain);
  if (count != 3 || error != std::errc{} || end != given.data() + given.size()) {
    std::fputs("lagometer-listen: use lagometer-listen DOMAIN TOPIC\n", stderr);
    return 2;
  }
  try {
    return lagometer::listen::listen(domain, words[2]);
  } catch (const std::exception& error_of_library) {
    std::fprintf(stderr, "lagometer-listen: %s\n", error_of_library.what());
    return 1;
  }
}
