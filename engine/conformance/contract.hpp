// SPDX-License-Identifier: Apache-2.0
// The lines of the contract in adapter.h, each judged separately, within one process.
//
// judge_contract() writes {"begin": name} before each line and {"line": name, "passed": true | false | null, "detail"}
// after it (null: it does not apply, and the detail says why). So the reading program knows to which line a crash or a
// hang belongs, and continues after it with `from`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "objects.hpp"

namespace lagometer::conformance {

/// The adapter breaks a line; the text says what was observed.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A line does not apply to this adapter; the text says why.
class Absent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The adapter under test, and what its sidecar declares.
class Bed {
 public:
  Bed(const Adapter& given, const nlohmann::json& order, const std::string& runtime_directory);
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return adapter.table(); }
  [[nodiscard]] bool declares(const char* ability, const char* value) const;
  /// Whether the sidecar's `stamps` for this dispatch list the stamp.
  [[nodiscard]] bool declares_stamp(const char* dispatch, const char* stamp) const;
  /// A number from the sidecar's `limits`, such as depth_max; nothing if it does not declare it.
  [[nodiscard]] std::optional<uint64_t> limit(const char* name) const;
  /// The first one that it declares, in this order: poll, waitset, listener.
  [[nodiscard]] uint32_t usual_dispatch() const;
  /// An endpoint of 64 bytes with the strongest declared reliability, and the history from the order.
  [[nodiscard]] EndpointSpec endpoint(const std::string& topic = "topic") const;

  const Adapter& adapter;
  nlohmann::json sidecar;
  ContextSpec context;
  uint32_t depth;                 // for keep_last
  std::string middleware_inside;  // middleware that the library contains: hides who allocates; or empty
};

/// One matched writer and reader in one context.
class Pair {
 public:
  /// `in_callback` is what a listener does; without it, its calls are only counted.
  Pair(Bed& bed, const EndpointSpec& spec, Manner manner = {}, std::function<void()> in_callback = {});
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  /// Sends probes until one arrives. Throws Broken.
  void meet();
  /// Takes, waiting as the dispatch requires, until this many messages have arrived, and returns them. Throws Broken:
  /// fewer arrived, or a damaged one.
  std::vector<Opened> receive(size_t count);
  /// Sends this many, one after the other, and takes each before sending the next.
  void exchange(size_t count);

  Context context;
  Writer writer;
  Reader reader;
  std::unique_ptr<Waitset> waitset;
  std::atomic<uint64_t> callbacks{0};

 private:
  static void on_data(void* user) noexcept;
  uint32_t take_into(std::vector<Opened>& opened, bool probes);
  /// What each side counts by itself, against the one that is there.
  std::string counted();
  EndpointSpec spec_;
  std::function<void()> in_callback_;
  uint64_t next_sequence_ = 1'000'000;
};

/// Ends a pair before the objects that its listener uses, however a line ends. Declare it after all of them.
class Ended {
 public:
  explicit Ended(std::unique_ptr<Pair>& pair) : pair_(pair) {}
  ~Ended() { pair_.reset(); }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;

 private:
  std::unique_ptr<Pair>& pair_;
};

constexpr int64_t kMillisecond_ns = 1'000'000;
constexpr int64_t kPatience_ns = 20'000 * kMillisecond_ns;  // for what must happen but may take long
constexpr int64_t kAtOnce_ns = 1'000 * kMillisecond_ns;     // for a call that never blocks, on a busy machine

/// Waits until `condition` holds. Throws Broken(what) if it does not come true.
void wait_until(const std::string& what, const std::function<bool()>& condition);
/// The same; `what` is asked for only then.
void wait_until(const std::function<std::string()>& what, const std::function<bool()>& condition);

/// Checks that `attempted` is rejected with a reason and, if given, this status. Throws Broken.
void must_refuse(const std::string& what, std::optional<lagometer_status> status,
                 const std::function<void()>& attempted);

struct Line {
  const char* name;
  void (*judge)(Bed& bed);
};
std::vector<Line> loading_lines();
std::vector<Line> growing_lines();
std::vector<Line> refusing_lines();
std::vector<Line> sending_lines();
std::vector<Line> taking_lines();
std::vector<Line> waiting_lines();
std::vector<Line> thread_lines();

/// order: {"sidecar", "options", "depth", "network", "from": first line's number, "middleware_inside"}
void judge_contract(const Adapter& adapter, const nlohmann::json& order, const std::string& runtime_directory);

}  // namespace lagometer::conformance
