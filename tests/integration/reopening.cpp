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
#include <optional>
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
  Opened(const lagometer_adapter_table& table, const std::string& folder, bool listens) : table_(table) {
    const Listener listener{&incoming_, on_data};
    ends_.emplace(table, folder, "{}", kPayloadBytes, listens ? listener : Listener{});
  }

  void publish() {
    auto message = make<lagometer_message>();
    const lagometer_status lent = table_.borrow(ends_->writer(), kPayloadBytes, &message);
    check(lent, "borrow");
    if (lent != LAGOMETER_OK) return;
    std::memset(message.regions[0].data, 7, kPayloadBytes);
    check(table_.commit(ends_->writer(), &message), "commit");
  }

  /// Whether a message was there to take.
  bool take() {
    lagometer_sample samples[8];
    for (lagometer_sample& sample : samples) sample = make<lagometer_sample>();
    uint32_t taken = 0;
    check(table_.take(ends_->reader(), samples, sizeof samples[0], 8, &taken), "take");
    if (taken > 0) table_.release(ends_->reader(), samples, sizeof samples[0], taken);
    return taken > 0;
  }

  /// Publishes until a message was taken and, with a listener, announced.
  void exchange(bool listens) {
    const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
    for (bool taken = false; !taken || (listens && incoming_.calls.load() == 0);) {
      auto matched = make<lagometer_matched>();
      check(table_.writer_matched(ends_->writer(), &matched), "writer_matched");
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
    std::atomic<pid_t> thread{0};
    std::thread traffic([&] {
      thread.store(gettid());
      for (; !stop.load(); published.fetch_add(1)) publish();
    });
    while (published.load() < 20) std::this_thread::yield();
    ends_->close_reader();
    incoming_.destroyed.store(true);
    const uint64_t until = published.load() + 20;
    while (published.load() < until) std::this_thread::yield();
    stop.store(true);
    traffic.join();
    // A thread that was joined may still be counted for a moment.
    const std::string task = "/proc/self/task/" + std::to_string(thread.load());
    while (std::filesystem::exists(task)) std::this_thread::yield();
    ends_.reset();
    return incoming_.late_calls.load();
  }

 private:
  Incoming incoming_;
  std::optional<Endpoints> ends_;
  const lagometer_adapter_table& table_;
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
    Opened opened(table, folder, listens);
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
