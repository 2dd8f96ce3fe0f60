// SPDX-License-Identifier: Apache-2.0
// The lines of the contract in adapter.h, each judged by itself, within one process.
//
// judge_contract() says {"begin": name} before each line and {"line": name, "passed": true | false | null, "detail"}
// after it (null: it does not apply, and the detail says why), so that whoever listens knows which line a crash or a
// hang belongs to, and goes on behind it with `from`.
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

/// A line is not kept; the text says what was seen.
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
  /// Whether the sidecar's `stamps` of this dispatch list the stamp.
  [[nodiscard]] bool declares_stamp(const char* dispatch, const char* stamp) const;
  /// A number of the sidecar's `limits`, such as depth_max; none if it declares none.
  [[nodiscard]] std::optional<uint64_t> limit(const char* name) const;
  /// The first that it declares of: poll, waitset, listener.
  [[nodiscard]] uint32_t usual_dispatch() const;
  /// An endpoint of 64 bytes with the strongest reliability that is declared, and the history that the order gives.
  [[nodiscard]] EndpointSpec endpoint(const std::string& topic = "topic") const;

  const Adapter& adapter;
  nlohmann::json sidecar;
  ContextSpec context;
  uint32_t depth;                 // of keep_last
  std::string middleware_inside;  // what of it the library holds, too: whose code allocates can't be told; or empty
};

/// One writer and one reader that met, within one context.
class Pair {
 public:
  /// `in_callback` is what a listener does; without it its calls are counted alone.
  Pair(Bed& bed, const EndpointSpec& spec, Manner manner = {}, std::function<void()> in_callback = {});
  ~Pair();
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;
  /// Probes until one came. Throws Broken.
  void meet();
  /// Takes, waiting in the way of the dispatch, until so many messages came, and gives them. Throws Broken: fewer came,
  /// or a damaged one.
  std::vector<Opened> receive(size_t count);
  /// Sends that many, one after the other, and takes each before the next.
  void exchange(size_t count);

  Context context;
  Writer writer;
  Reader reader;
  std::unique_ptr<Waitset> waitset;
  std::atomic<uint64_t> callbacks{0};

 private:
  static void on_data(void* user) noexcept;
  uint32_t take_into(std::vector<Opened>& opened, bool probes);
  EndpointSpec spec_;
  std::function<void()> in_callback_;
  uint64_t next_sequence_ = 1'000'000;
};

/// Ends a pair before what its listener uses goes, however a line ends. Declared after all that.
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
constexpr int64_t kPatience_ns = 20'000 * kMillisecond_ns;  // for what must happen, but takes as long as it takes
constexpr int64_t kAtOnce_ns = 1'000 * kMillisecond_ns;     // of a call that never blocks, on a busy machine

/// Waits until `condition` holds. Throws Broken(what) if it does not come true.
void wait_until(const std::string& what, const std::function<bool()>& condition);

/// Whether `attempted` is refused with a reason and, if given, this status. Throws Broken.
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
