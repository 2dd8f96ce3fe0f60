// SPDX-License-Identifier: Apache-2.0
// A reader with somebody who takes from it, in the way of its dispatch, and keeps account of what came.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "objects.hpp"

namespace lagometer::conformance {

/// What came of one stream. sequences: of data, in the order of arrival, the first kSequencesMax of them.
struct Heard {
  static constexpr size_t kSequencesMax = 20'000;
  uint64_t probes = 0;
  uint64_t count = 0;
  uint64_t last_bytes = 0;
  std::vector<uint64_t> sequences;
  nlohmann::json traces = nlohmann::json::array();  // of the same messages, if stamps were asked for
};

class Inbox {
 public:
  /// Created; nothing is enabled yet. `work_ns`: how long it works on each message.
  Inbox(Context& context, const EndpointSpec& spec, int64_t work_ns);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void enable();
  /// Nothing is taken until resume(), by a thread or a listener of its own; who polls is the Poller's business.
  void stall();
  void resume();
  /// Takes all there is. Returns how many there were.
  uint64_t poll();
  [[nodiscard]] nlohmann::json account(bool with_sequences);
  [[nodiscard]] Reader& reader() noexcept { return reader_; }
  [[nodiscard]] bool polled() const noexcept { return dispatch_ == LAGOMETER_DISPATCH_POLL; }

 private:
  static void on_data(void* user) noexcept;
  uint64_t take_all();
  void note(const lagometer_sample& sample);
  void note_failure(const std::string& text);
  void wait_and_take() noexcept;
  void stay_stalled();

  uint32_t dispatch_;
  const PayloadType& payload_;
  int64_t work_ns_;
  bool stamps_;
  uint32_t instances_;  // of a keyed topic; else 0
  std::mutex mutex_;    // of the account and the stall
  std::condition_variable changed_;
  bool stalled_ = false;
  std::map<uint32_t, Heard> heard_;
  uint64_t damaged_ = 0;
  std::string damage_;   // of the first damaged message
  std::string failure_;  // of the first call that failed
  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> callbacks_{0};
  Reader reader_;
  std::unique_ptr<Waitset> waitset_;
  std::thread thread_;
};

/// The one thread that takes from all polled readers of a process.
class Poller {
 public:
  Poller() : thread_([this] { run(); }) {}
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  void add(Inbox& inbox);
  /// Nothing takes from it any more when this returns.
  void remove(Inbox& inbox);

 private:
  void run();
  std::mutex mutex_;
  std::vector<Inbox*> inboxes_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace lagometer::conformance
