// SPDX-License-Identifier: Apache-2.0
// Opens and closes everything that an adapter has, again and again, each time amid traffic, without the engine; then
// says on standard output what the process held after the first rounds and at the end. No callback may come once its
// reader is destroyed. Arguments: library, rounds, dispatch (listener | poll); more is ignored.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

#include "bare_host.hpp"

namespace {

constexpr uint64_t kPayloadBytes = 64;
constexpr int kSettled = 10;  // rounds after which there is whatever a library keeps until the process ends
constexpr auto kLongest = std::chrono::seconds(20);

struct Incoming {
  std::atomic<bool> destroyed{false};
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> late_calls{0};
};

void on_data(void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  incoming.calls.fetch_add(1);
  if (incoming.destroyed.load()) incoming.late_calls.fetch_add(1);
}

/// Everything of one round, made and enabled.
class Opened {
 public:
  Opened(const lagometer_adapter_table& table, const std::string& folder, uint32_t dispatch) : table_(table) {
    auto context = make<lagometer_context_config>();
    context.name = text("reopening");
    context.profile = text("default");
    context.options = text("{}");
    context.runtime_directory = text(folder);
    context.network = text("{}");
    check(table.context_create(&context, &context_), "context_create");
    check(table.context_enable(context_), "context_enable");
    check(table.node_create(context_, text("node"), &node_), "node_create");
    auto type = make<lagometer_type_config>();
    type.name = text("bytes");
    type.max_bytes = kPayloadBytes;
    check(table.type_create(context_, &type, &type_), "type_create");
    auto qos = make<lagometer_qos>();
    qos.present = LAGOMETER_QOS_HISTORY;
    qos.depth = 8;
    auto endpoint = make<lagometer_endpoint_config>();
    endpoint.type = type_;
    endpoint.topic = text("again");
    endpoint.qos = &qos;
    check(table.writer_create(node_, &endpoint, &writer_), "writer_create");
    endpoint.dispatch = dispatch;
    endpoint.user = &incoming_;
    endpoint.on_data = on_data;
    check(table.reader_create(node_, &endpoint, &reader_), "reader_create");
    check(table.reader_enable(reader_), "reader_enable");
    check(table.writer_enable(writer_), "writer_enable");
  }

  void publish() {
    auto message = make<lagometer_message>();
    const lagometer_status lent = table_.borrow(writer_, kPayloadBytes, &message);
    check(lent, "borrow");
    if (lent != LAGOMETER_OK) return;
    std::memset(message.regions[0].data, 7, kPayloadBytes);
    check(table_.commit(writer_, &message), "commit");
  }

  /// Whether a message was there to take.
  bool take() {
    lagometer_sample samples[8];
    for (lagometer_sample& sample : samples) sample = make<lagometer_sample>();
    uint32_t taken = 0;
    check(table_.take(reader_, samples, sizeof samples[0], 8, &taken), "take");
    if (taken > 0) table_.release(reader_, samples, sizeof samples[0], taken);
    return taken > 0;
  }

  /// Publishes until a message was taken and, with a listener, announced.
  void exchange(bool listens) {
    const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
    for (bool taken = false; !taken || (listens && incoming_.calls.load() == 0);) {
      auto matched = make<lagometer_matched>();
      check(table_.writer_matched(writer_, &matched), "writer_matched");
      publish();
      std::this_thread::yield();
      taken = take() || taken;
      if (std::chrono::steady_clock::now() > give_up_at) give_up("nothing came");
    }
  }

  /// Destroys the reader while its publisher goes on, then the rest. Returns the callbacks that came too late.
  uint64_t close() {
    std::atomic<bool> stop{false};
    std::atomic<uint64_t> published{0};
    std::thread traffic([&] {
      for (; !stop.load(); published.fetch_add(1)) publish();
    });
    while (published.load() < 20) std::this_thread::yield();
    table_.reader_destroy(reader_);
    incoming_.destroyed.store(true);
    const uint64_t until = published.load() + 20;
    while (published.load() < until) std::this_thread::yield();
    stop.store(true);
    traffic.join();
    table_.writer_destroy(writer_);
    table_.type_destroy(type_);
    table_.node_destroy(node_);
    table_.context_destroy(context_);
    return incoming_.late_calls.load();
  }

 private:
  const lagometer_adapter_table& table_;
  Incoming incoming_;
  lagometer_context* context_ = nullptr;
  lagometer_node* node_ = nullptr;
  lagometer_type* type_ = nullptr;
  lagometer_writer* writer_ = nullptr;
  lagometer_reader* reader_ = nullptr;
};

long entries(const std::filesystem::path& folder) {
  std::error_code gone;
  const std::filesystem::recursive_directory_iterator all(folder, gone);
  long files = 0;
  for (const auto& entry : all) files += entry.is_directory(gone) ? 0 : 1;
  return files;
}

void say(const char* when) {
  const auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator{});
  };
  std::printf(R"({"event":"%s","descriptors":%ld,"threads":%ld,"files":%ld})"
              "\n",
              when, count("/proc/self/fd"), count("/proc/self/task"), entries("/dev/shm"));
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) give_up("usage: reopening LIBRARY ROUNDS listener|poll");
  const lagometer_host host = make_host();
  const lagometer_adapter_table& table = open_adapter(arguments[1], host);
  const std::string folder = "/dev/shm/reopening-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  const bool listens = std::string_view(arguments[3]) == "listener";
  uint64_t late_calls = 0;
  for (int round = 0; round < kSettled + std::atoi(arguments[2]); ++round) {
    if (round == kSettled) say("before");
    Opened opened(table, folder, listens ? LAGOMETER_DISPATCH_LISTENER : LAGOMETER_DISPATCH_POLL);
    opened.exchange(listens);
    late_calls += opened.close();
  }
  say("after");
  std::printf(R"({"event":"callbacks","late":%lu})"
              "\n",
              static_cast<unsigned long>(late_calls));
  std::filesystem::remove_all(folder);
  return 0;
}
