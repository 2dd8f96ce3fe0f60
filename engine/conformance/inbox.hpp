// SPDX-License-Identifier: Apache-2.0
// A reader, and what takes from it as its dispatch requires and keeps account of the messages.
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

/// What arrived from one stream. sequences: of data, in order of arrival, the first kSequencesMax of them.
struct Heard {
  static constexpr size_t kSequencesMax = 20'000;
  uint64_t probes = 0;
  uint64_t count = 0;
  uint64_t last_bytes = 0;
  std::vector<uint64_t> sequences;
  nlohmann::json traces = nlohmann::json::array();  // of the same messages, if stamps were requested
};

class Inbox {
 public:
  /// Created; nothing is enabled yet. `work_ns`: how long it works on each message.
  Inbox(Context& context, const EndpointSpec& spec, int64_t work_ns);
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void enable();
  /// Its own thread or listener takes nothing until resume(); polling is up to the Poller.
  void stall();
  void resume();
  /// Takes everything. Returns how many messages there were.
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
  uint32_t instances_;  // for a keyed topic; otherwise 0
  std::mutex mutex_;    // protects the account and the stall
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

/// The only thread that takes from all polled readers of a process.
class Poller {
 public:
  Poller() : thread_([this] { run(); }) {}
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;
  void add(Inbox& inbox);
  /// When this returns, nothing takes from the inbox any more.
  void remove(Inbox& inbox);

 private:
  void run();
  std::mutex mutex_;
  std::vector<Inbox*> inboxes_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace lagometer::conformance
