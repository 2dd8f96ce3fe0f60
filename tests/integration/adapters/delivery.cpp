// SPDX-License-Identifier: Apache-2.0
// How one message gets from a writer to a reader of an adapter, seen from inside and without the engine: whose memory
// it lies in on either side, and which thread tells of it. Said on standard output as one JSON object.
// Arguments: library, options (JSON), type (bytes | fixed), processes (one | two); more is ignored.
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "lagometer/adapter.h"

namespace {

constexpr uint64_t kPayloadBytes = 65536;
constexpr auto kLongest = std::chrono::seconds(20);
constexpr auto kPause = std::chrono::milliseconds(5);  // between two messages

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

lagometer_string text(std::string_view value) { return {value.data(), value.size()}; }

void check(lagometer_status status, const char* call) {
  if (status < 0) give_up(std::string(call) + " failed with " + std::to_string(status));
}

template <typename Config>
Config make() {
  Config config{};
  config.size = sizeof config;
  config.abi_version = LAGOMETER_ABI_VERSION;
  return config;
}

const lagometer_adapter_table& load(const char* library) {
  static lagometer_host host = make<lagometer_host>();
  host.log = [](void*, uint32_t, lagometer_string line) noexcept {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size), line.data);
  };
  host.now_ns = [](void*) noexcept {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return int64_t{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()};
  };
  host.stamp = [](void*, void*, uint32_t, uint64_t, int64_t) noexcept {};
  host.thread_begin = [](void*, uint32_t, lagometer_string) noexcept {};
  host.thread_end = [](void*) noexcept {};
  host.fail = [](void*, lagometer_string reason) noexcept {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(reason.size), reason.data);
  };
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) give_up(dlerror());
  const auto entry = reinterpret_cast<decltype(&lagometer_adapter)>(dlsym(handle, "lagometer_adapter"));
  if (entry == nullptr) give_up(dlerror());
  return *entry(&host);
}

/// Where an address lies: in its own process, and in the file that is mapped there, if it is one.
struct Place {
  uint64_t address = 0;
  uint64_t inode = 0;
  uint64_t offset = 0;
  char file[128] = "";
};

Place find(const void* pointer) {
  Place place;
  place.address = reinterpret_cast<uint64_t>(pointer);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    char permissions[5] = "", device[16] = "", file[128] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %15s %lu %127s", &begin, &end, permissions, &offset, device, &inode,
                    file) < 6) {
      continue;
    }
    if (place.address < begin || place.address >= end) continue;
    if (permissions[3] != 's') break;  // private memory: nobody else's
    place.inode = inode;
    place.offset = offset + (place.address - begin);
    std::memcpy(place.file, file, sizeof file);
    break;
  }
  return place;
}

/// What the receiving side saw of one message.
struct Arrival {
  uint64_t sequence = 0;
  Place place;
  bool loaned = false;
  bool intact = false;
  std::thread::id thread;
};

/// The end of a process: its context, and a writer, a reader or both in it.
class End {
 public:
  End(const lagometer_adapter_table& table, const char* options, const char* type, bool writes, bool reads,
      bool listens)
      : table_(table) {
    const std::string folder = "/dev/shm/delivery";
    std::filesystem::create_directories(folder);
    auto context = make<lagometer_context_config>();
    context.name = text("delivery");
    context.profile = text("default");
    context.options = text(options);
    context.runtime_directory = text(folder);
    context.network = text(R"({"loopback":true,"peers":2})");
    check(table.context_create(&context, &context_), "context_create");
    check(table.context_enable(context_), "context_enable");
    check(table.node_create(context_, text("node"), &node_), "node_create");
    auto config = make<lagometer_type_config>();
    config.name = text(type);
    config.max_bytes = kPayloadBytes;
    check(table.type_create(context_, &config, &type_), "type_create");
    auto qos = make<lagometer_qos>();
    qos.present = LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_DURABILITY;
    qos.reliability = LAGOMETER_RELIABLE;
    qos.depth = 8;
    auto endpoint = make<lagometer_endpoint_config>();
    endpoint.type = type_;
    endpoint.topic = text("delivery");
    endpoint.qos = &qos;
    if (writes) check(table.writer_create(node_, &endpoint, &writer_), "writer_create");
    endpoint.dispatch = listens ? LAGOMETER_DISPATCH_LISTENER : LAGOMETER_DISPATCH_POLL;
    endpoint.user = this;
    endpoint.on_data = [](void* self) { static_cast<End*>(self)->on_data(); };
    if (reads) check(table.reader_create(node_, &endpoint, &reader_), "reader_create");
    if (reads) check(table.reader_enable(reader_), "reader_enable");
    if (writes) check(table.writer_enable(writer_), "writer_enable");
  }

  ~End() {
    if (reader_ != nullptr) table_.reader_destroy(reader_);
    if (writer_ != nullptr) table_.writer_destroy(writer_);
    table_.type_destroy(type_);
    table_.node_destroy(node_);
    table_.context_destroy(context_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  /// Publishes a message whose number and content tell which it is; remembers where it was written.
  void publish() {
    auto message = make<lagometer_message>();
    const lagometer_status lent = table_.borrow(writer_, kPayloadBytes, &message);
    check(lent, "borrow");
    if (lent != LAGOMETER_OK) return;
    const uint64_t sequence = ++last_;
    uint8_t* const data = message.regions[0].data;
    std::memset(data, static_cast<int>(sequence % 251), message.regions[0].size);
    std::memcpy(data, &sequence, sizeof sequence);
    written_[sequence] = find(data);
    origin_ = message.origin;
    check(table_.commit(writer_, &message), "commit");
  }

  std::optional<Arrival> take() {
    auto sample = make<lagometer_sample>();
    uint32_t taken = 0;
    check(table_.take(reader_, &sample, sizeof sample, 1, &taken), "take");
    if (taken == 0) return {};
    std::optional<Arrival> arrival;
    if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) == 0) {
      const uint8_t* const data = sample.regions[0].data;
      arrival.emplace();
      std::memcpy(&arrival->sequence, data, sizeof arrival->sequence);
      arrival->place = find(data);
      arrival->loaned = (sample.flags & LAGOMETER_SAMPLE_LOANED) != 0;
      arrival->intact = sample.regions[0].size == kPayloadBytes && data[kPayloadBytes - 1] == arrival->sequence % 251;
      arrival->thread = std::this_thread::get_id();
    }
    table_.release(reader_, &sample, sizeof sample, 1);
    return arrival;
  }

  /// The number of the message that was published last.
  [[nodiscard]] uint64_t last() const { return last_; }

  /// Takes what is still under way, until the message of that number came, which it does whatever the depth: none
  /// displaces the last one.
  void take_until(uint64_t seen, uint64_t last) {
    const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
    while (seen < last) {
      if (const auto arrival = take()) seen = arrival->sequence;
      if (std::chrono::steady_clock::now() > give_up_at) give_up("the last message did not come");
      std::this_thread::yield();
    }
  }

  /// Waits a little for what the listener takes.
  std::optional<Arrival> heard() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kPause, [this] { return arrival_.has_value(); });
    return arrival_;
  }

  void say(const Arrival& arrival) const {
    static constexpr const char* kOrigins[] = {"none", "loaned", "native", "copied"};
    const Place& from = written_.at(arrival.sequence);
    const bool same_file = from.inode != 0 && from.inode == arrival.place.inode;
    const auto word = [](bool value) { return value ? "true" : "false"; };
    std::printf(
        "{\"event\":\"delivery\",\"origin\":\"%s\",\"loaned\":%s,\"intact\":%s,\"same_address\":%s,"
        "\"same_shared_memory\":%s,\"file\":\"%s\",\"publishers_thread\":%s}\n",
        kOrigins[origin_ < 4 ? origin_ : 0], word(arrival.loaned), word(arrival.intact),
        word(from.address == arrival.place.address), word(same_file && from.offset == arrival.place.offset), from.file,
        word(arrival.thread == std::this_thread::get_id()));
    std::fflush(stdout);
  }

 private:
  void on_data() {
    const std::optional<Arrival> arrival = take();
    const std::lock_guard lock(mutex_);
    if (arrival && !arrival_) arrival_ = arrival;
    changed_.notify_one();
  }

  const lagometer_adapter_table& table_;
  lagometer_context* context_ = nullptr;
  lagometer_node* node_ = nullptr;
  lagometer_type* type_ = nullptr;
  lagometer_writer* writer_ = nullptr;
  lagometer_reader* reader_ = nullptr;
  uint64_t last_ = 0;
  uint32_t origin_ = 0;
  std::map<uint64_t, Place> written_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Arrival> arrival_;
};

void within_one_process(const lagometer_adapter_table& table, char** arguments) {
  End both(table, arguments[2], arguments[3], true, true, true);
  const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
  std::optional<Arrival> arrival;
  while (!arrival) {
    both.publish();
    arrival = both.heard();
    if (std::chrono::steady_clock::now() > give_up_at) give_up("nothing came");
  }
  both.say(*arrival);
}

// The other process, forked before any library was loaded: waits for a message, reports it, and takes what comes until
// the message that it is told to be the last. It stays until the publisher is gone.
[[noreturn]] void receive(int report, int leave, char** arguments) {
  {
    End end(load(arguments[1]), arguments[2], arguments[3], false, true, false);
    std::optional<Arrival> arrival;
    while (!arrival) {
      arrival = end.take();
      if (!arrival) std::this_thread::yield();
    }
    if (write(report, &*arrival, sizeof *arrival) != sizeof *arrival) give_up("the pipe is broken");
    uint64_t last = 0;
    if (read(leave, &last, sizeof last) != sizeof last) give_up("the pipe for the leave is broken");
    end.take_until(arrival->sequence, last);
    if (write(report, &last, sizeof last) != sizeof last) give_up("the pipe is broken");
    char none = 0;
    if (read(leave, &none, 1) != 0) give_up("the pipe for the leave is broken");
  }
  std::exit(0);
}

Arrival publish_until_heard(End& end, int report, pid_t child) {
  const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
  pollfd reported{report, POLLIN, 0};
  do {
    end.publish();
    if (std::chrono::steady_clock::now() > give_up_at) {
      kill(child, SIGKILL);
      give_up("nothing came");
    }
  } while (poll(&reported, 1, static_cast<int>(kPause.count())) == 0);
  Arrival arrival;
  if (read(report, &arrival, sizeof arrival) != sizeof arrival) give_up("the other process broke off");
  arrival.thread = {};
  return arrival;
}

// Nobody leaves while messages flow, and the publisher first: Fast DDS 2.9 can lock itself up if a subscriber goes
// while its publisher's thread for asynchronous sending has something to send, and that is not what is asked here.
void between_two_processes(char** arguments) {
  int report[2];
  int leave[2];
  if (pipe(report) != 0 || pipe(leave) != 0) give_up("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(leave[1]);
    receive(report[1], leave[0], arguments);
  }
  close(report[1]);
  {
    End end(load(arguments[1]), arguments[2], arguments[3], true, false, false);
    end.say(publish_until_heard(end, report[0], child));
    uint64_t last = end.last();
    if (write(leave[1], &last, sizeof last) != sizeof last) give_up("the pipe for the leave is broken");
    if (read(report[0], &last, sizeof last) != sizeof last) give_up("the other process broke off");
  }
  close(leave[1]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) give_up("the other process failed");
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) give_up("usage: delivery LIBRARY OPTIONS bytes|fixed one|two");
  if (std::string_view(arguments[4]) == "one") {
    within_one_process(load(arguments[1]), arguments);
  } else {
    between_two_processes(arguments);
  }
  return 0;
}
