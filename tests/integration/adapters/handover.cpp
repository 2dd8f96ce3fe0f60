// SPDX-License-Identifier: Apache-2.0
// Hands messages from a writer to a reader of the same process, without the engine, and says on standard output whether
// the reader was shown the very bytes that the writer filled. One in four is held while the next ones are sent: nobody
// may write to it. Arguments: library, options (JSON); more is ignored.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "bare_host.hpp"

namespace {

constexpr uint64_t kPayloadBytes = 4096;
constexpr int kMessages = 100;
constexpr int kHeldEvery = 4;
constexpr auto kLongest = std::chrono::seconds(20);

class Pair {
 public:
  Pair(const lagometer_adapter_table& table, const std::string& folder, const char* options)
      : ends_(table, folder, options, kPayloadBytes), table_(table) {}

  /// Publishes a message full of `value` and returns where it was filled.
  const uint8_t* publish(int value) {
    auto message = make<lagometer_message>();
    check(table_.borrow(ends_.writer(), kPayloadBytes, &message), "borrow");
    std::memset(message.regions[0].data, value, kPayloadBytes);
    const uint8_t* const filled = message.regions[0].data;
    check(table_.commit(ends_.writer(), &message), "commit");
    return filled;
  }

  /// Waits for the next message; false if none came for `patience`.
  bool take(lagometer_sample& sample, std::chrono::milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    for (uint32_t taken = 0; taken == 0;) {
      check(table_.take(ends_.reader(), &sample, sizeof sample, 1, &taken), "take");
      if (taken == 1) return true;
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  void release(lagometer_sample& sample) { table_.release(ends_.reader(), &sample, sizeof sample, 1); }

  /// Publishes until the reader hears the writer, and takes all of it.
  void connect() {
    const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
    auto sample = make<lagometer_sample>();
    for (publish(0); !take(sample, std::chrono::milliseconds(5)); publish(0)) {
      if (std::chrono::steady_clock::now() > give_up_at) give_up("nothing came");
    }
    do {
      release(sample);
    } while (take(sample, std::chrono::milliseconds(200)));
  }

 private:
  Endpoints ends_;
  const lagometer_adapter_table& table_;
};

bool holds(const lagometer_sample& sample, int value) {
  const lagometer_region& bytes = sample.regions[0];
  return bytes.size == kPayloadBytes && std::all_of(bytes.data, bytes.data + bytes.size, [value](uint8_t byte) {
           return byte == static_cast<uint8_t>(value);
         });
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) give_up("usage: handover LIBRARY OPTIONS");
  const lagometer_host host = make_host();
  const lagometer_adapter_table& table = open_adapter(arguments[1], host);
  const std::string folder = "/dev/shm/handover-" + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  int same = 0;
  int wrong = 0;
  {
    Pair pair(table, folder, arguments[2]);
    pair.connect();
    std::vector<std::pair<int, lagometer_sample>> held;
    for (int value = 1; value <= kMessages; ++value) {
      const uint8_t* const filled = pair.publish(value);
      auto sample = make<lagometer_sample>();
      if (!pair.take(sample, std::chrono::duration_cast<std::chrono::milliseconds>(kLongest)))
        give_up("a message is lost");
      same += sample.regions[0].data == filled ? 1 : 0;
      wrong += holds(sample, value) ? 0 : 1;
      if (value % kHeldEvery == 0)
        held.emplace_back(value, sample);
      else
        pair.release(sample);
    }
    for (auto& [value, sample] : held) {
      wrong += holds(sample, value) ? 0 : 1;
      pair.release(sample);
    }
  }
  std::printf(R"({"event":"handover","messages":%d,"same":%d,"wrong":%d})"
              "\n",
              kMessages, same, wrong);
  std::filesystem::remove_all(folder);
  return 0;
}
