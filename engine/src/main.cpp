// SPDX-License-Identifier: Apache-2.0
// lagometer-worker: runs one plan. Goes through the phases create → discover → warm-up → measure → drain → tear down
// and reports its phase on its pipe (docs/PROTOCOL.md).
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "control.hpp"
#include "heap_offset.hpp"
#include "plan_bounds.hpp"
#include "realtime.hpp"
#include "session.hpp"
#include "wake_up.hpp"

#ifndef LAGOMETER_VERSION
#error "the build says which version this is"
#endif

namespace lagometer::engine {
namespace {

using nlohmann::json;

/// Ends the trial: the phase is the current one, the reason one of the protocol's.
struct Failure {
  const char* reason;
  std::string message;
  json missing = json::array();
};
/// The conductor no longer needs this worker.
struct Dismissed {};

struct Usage {
  int64_t cpu_ns = 0;
  long voluntary = 0;
  long involuntary = 0;
};

Usage usage_now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {int64_t{time.tv_sec} * kNanosecondsPerSecond + time.tv_nsec, usage.ru_nvcsw, usage.ru_nivcsw};
}

/// `begin`, `end`: what was accounted to each thread at the begin and the end of the measure phase, for threads alive
/// at both.
json threads_json(const std::map<int, RunTime>& begin = {}, const std::map<int, RunTime>& end = {}) {
  json result = json::array();
  for (const ThreadFacts& thread : read_threads()) {
    result.push_back({{"tid", thread.id},
                      {"name", thread.name},
                      {"policy", thread.policy},
                      {"priority", thread.priority},
                      {"cpus", thread.cpus},
                      {"timer_slack_ns", thread.timer_slack_ns}});
    const auto before = begin.find(thread.id);
    const auto after = end.find(thread.id);
    if (before == begin.end() || after == end.end()) continue;
    result.back()["run_ns"] = after->second.run_ns - before->second.run_ns;
    result.back()["wait_ns"] = after->second.wait_ns - before->second.wait_ns;
  }
  return result;
}

/// The memory that this worker got for its records; -1: no such memory.
int inherited_records() {
  const char* const given = std::getenv("LAGOMETER_RECORDS_FD");
  const std::string_view digits = given == nullptr ? "" : given;
  int descriptor = -1;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), descriptor);
  return problem == std::errc() && end == digits.data() + digits.size() ? descriptor : -1;
}

class Worker {
 public:
  Worker(Control& control, const Plan& plan) : control_(control), plan_(plan) {}

  int run() {
    try {
      walk();
      return 0;
    } catch (const Failure& failure) {
      return fail(failure.reason, failure.message, failure.missing);
    } catch (const Dismissed&) {
      session_->stop();
      const Recorder& recorder = session_->recorder();
      if (recorder.count(LaneKind::sent) + recorder.count(LaneKind::received) > 0)
        control_.send_block(recorder.packed());
      session_.reset();
      control_.send({{"event", "bye"}});
      return 0;
    } catch (const SchedulingRefused& error) {
      return fail("scheduling-refused", error.what(), json::array());
    } catch (const AdapterMissing& error) {
      return fail("adapter-missing", error.what(), json::array());
    } catch (const AdapterError& error) {
      return fail("adapter-failed", error.what(), json::array());
    } catch (const NoRoom& error) {
      return fail("no-memory", error.what(), json::array());
    } catch (const std::bad_alloc&) {
      return fail("no-memory", "out of memory", json::array());
    } catch (const std::exception& error) {
      return fail("internal", error.what(), json::array());
    }
  }

 private:
  void walk() {
    control_.send({{"event", "hello"},
                   {"protocol", 1},
                   {"worker", plan_.worker},
                   {"pid", getpid()},
                   {"version", LAGOMETER_VERSION}});
    if (plan_.standalone) control_.ignore_end_of_input();
    create();
    const int64_t at_ns = discover();
    const json done = measure(at_ns);
    tear_down(done);
  }

  void create() {
    phase_ = "create";
    heap_offset_.emplace(plan_.heap_offset_bytes);
    warnings_ = apply_scheduling(plan_);
    session_ = std::make_unique<Session>(plan_, inherited_records());
    control_.send({{"event", "ready"},
                   {"adapters", session_->describe_adapters()},
                   {"settings", session_->describe_settings()},
                   {"scheduling", {{"threads", threads_json()}}},
                   {"warnings", warnings_}});
  }

  /// Sends probes until all readers have heard everything they expect and the conductor says go; returns the common
  /// start.
  int64_t discover() {
    phase_ = "discover";
    const int64_t begin_ns = session_->enabled_ns();
    int64_t interval_ns = kProbeFirst_ns;
    bool matched = !plan_.matching;
    int64_t matched_ns = begin_ns;
    if (matched) control_.send({{"event", "matched"}, {"elapsed_ns", 0}});
    for (;;) {
      if (session_->look_for_readers(plan_.matching))
        interval_ns = kProbeFirst_ns;  // a new endpoint is waiting for the next probe
      check_failure();
      tell_of_incompatible();
      const int64_t next_ns = now_ns() + interval_ns;
      interval_ns = std::min(interval_ns * 5 / 4, kProbeSlowest_ns);
      do {
        if (!matched && session_->missing().empty()) {
          matched = true;
          control_.send({{"event", "matched"}, {"elapsed_ns", now_ns() - begin_ns}});
          matched_ns = now_ns();
        }
        // Nobody tells a standalone worker that its peers are matched as well, so it keeps probing for a while.
        if (plan_.standalone && matched && now_ns() > matched_ns + kStandaloneGrace_ns)
          return now_ns() + kStandaloneHeadStart_ns;
        // While it waits for its peers' probes it checks often; once matched, it only waits for the conductor.
        const int64_t until_ns = matched ? next_ns : std::min(next_ns, now_ns() + kMatchLook_ns);
        if (const auto command = control_.wait(until_ns)) {
          if (command->kind != Command::Kind::go) dismissed(*command);
          if (!matched) throw Failure{"internal", "told to go before it was matched"};
          return command->at_ns;
        }
      } while (now_ns() < next_ns);
      if (!matched && now_ns() - begin_ns > plan_.discovery_timeout_ns) report_missing();
    }
  }

  /// Endpoints that can't match are no reason to give up: others of the topic may be compatible.
  void tell_of_incompatible() {
    for (json event : session_->newly_incompatible()) {
      event["event"] = "incompatible";
      control_.send(event);
    }
  }

  [[noreturn]] void report_missing() {
    const json missing = session_->missing();
    std::string text = "not matched within " + std::to_string(plan_.discovery_timeout_ns / 1'000'000) + " ms:";
    for (const json& reader : missing) {
      text += std::string(&reader == &missing.front() ? "" : ";") + " node " + reader["node"].get<std::string>() +
              " on topic " + reader["topic"].get<std::string>() + " misses streams " + reader["streams"].dump();
    }
    throw Failure{"endpoints-missing", text, missing};
  }

  /// Leaves the nodes alone until `until_ns`, but listens to the conductor.
  void sleep_until(int64_t until_ns) {
    if (const auto command = control_.wait(until_ns)) dismissed(*command);
  }

  [[noreturn]] void dismissed(const Command& command) {
    if (command.kind == Command::Kind::go) throw Failure{"internal", "told to go twice"};
    if (command.kind == Command::Kind::end_of_input)
      throw Failure{"internal", "standard input ended: the conductor is gone"};
    throw Dismissed{};
  }

  void check_failure() const {
    if (const std::string text = session_->failure(); !text.empty()) throw Failure{"adapter-failed", text};
  }

  json measure(int64_t at_ns) {
    phase_ = "warm-up";
    const int64_t begin_ns = at_ns + plan_.warmup_ns;
    const int64_t end_ns = begin_ns + plan_.measure_ns;
    const int64_t drained_ns = end_ns + plan_.drain_ns;
    session_->start(at_ns, end_ns);
    sleep_until(begin_ns);
    phase_ = "measure";
    // Only real-time threads can be throttled like this; others need not pay for reading the accounts.
    const auto account = [this] { return plan_.scheduling.fifo ? read_run_times() : std::map<int, RunTime>(); };
    const std::map<int, RunTime> accounts_before = account();
    const Usage before = usage_now();
    sleep_until(end_ns);
    const Usage after = usage_now();
    const std::map<int, RunTime> accounts_after = account();
    phase_ = "drain";
    sleep_until(drained_ns);
    const json threads = threads_json(accounts_before, accounts_after);
    session_->stop();
    check_failure();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {
        {"event", "done"},
        {"at_ns", at_ns},
        {"measure_begin_ns", begin_ns},
        {"measure_end_ns", end_ns},
        {"drain_end_ns", drained_ns},
        {"cpu_ns", after.cpu_ns - before.cpu_ns},
        {"context_switches",
         {{"voluntary", after.voluntary - before.voluntary}, {"involuntary", after.involuntary - before.involuntary}}},
        {"resident_bytes_max", usage.ru_maxrss * 1024},
        {"threads", threads},
        {"writers", session_->describe_writers()},
        {"readers", session_->describe_readers()},
        {"warnings", session_->warnings()}};
  }

  void tear_down(const json& done) {
    phase_ = "tear-down";
    control_.send(done);
    if (!plan_.standalone || !control_.output_is_terminal()) control_.send_block(session_->recorder().packed());
    session_.reset();
    control_.send({{"event", "bye"}});
  }

  int fail(const char* reason, const std::string& message, const json& missing) {
    json event = {{"event", "failed"}, {"phase", phase_}, {"reason", reason}, {"message", message}};
    if (!missing.empty()) event["missing"] = missing;
    control_.send(event);
    // A broken adapter may hang in its destructors; ending the process frees everything anyway.
    std::fflush(stderr);
    _exit(1);
  }

  Control& control_;
  Plan plan_;
  const char* phase_ = "plan";
  std::vector<std::string> warnings_;
  std::optional<HeapOffset> heap_offset_;
  std::unique_ptr<Session> session_;
};

int conducted() {
  Control control;
  std::string text;
  try {
    text = control.read_plan();
    return Worker(control, parse_plan(text)).run();
  } catch (const PlanError& error) {
    control.send({{"event", "failed"}, {"phase", "plan"}, {"reason", "bad-plan"}, {"message", error.what()}});
  } catch (const std::exception& error) {
    control.send({{"event", "failed"}, {"phase", "plan"}, {"reason", "bad-plan"}, {"message", error.what()}});
  }
  return 2;
}

int probe(const char* library) {
  Control control;
  try {
    control.send(json::parse(Adapter(library).probe("{}")));
    return 0;
  } catch (const std::exception& error) {
    control.send({{"error", error.what()}});
    return 1;
  }
}

/// The arguments of --wake-up: how long in ms, and the priority of SCHED_FIFO.
int wake_up(const char* duration_ms, const char* priority) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  constexpr int64_t kLongest_ms = 3'600'000;
  const int64_t length_ms = std::atoll(duration_ms);
  const int level = std::atoi(priority);
  if (length_ms < 1 || length_ms > kLongest_ms || level < 1 || level > 99) {
    std::fputs("--wake-up takes 1 to 3600000 ms and a priority from 1 to 99\n", stderr);
    return 2;
  }
  try {
    const std::string text = measure_wake_up(length_ms * 1'000'000, level).dump();
    return std::printf("%s\n", text.c_str()) > 0 && std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the wake-up latency can't be measured: %s\n", error.what());
    return 1;
  }
}

constexpr const char* kHelp =
    "usage: lagometer-worker < plan.json      run a plan (one JSON object on one line; docs/PROTOCOL.md)\n"
    "       lagometer-worker --probe LIBRARY  ask an adapter what it is\n"
    "       lagometer-worker --wake-up MS PRIORITY  measure how late each CPU wakes a thread\n"
    "       lagometer-worker --version\n"
    "A plan to try: lagometer plan STUDY --worker CELL 0 | lagometer-worker (lagometer plan STUDY lists cells)\n";

int run(int count, char** arguments) {
  const std::string_view first = count > 1 ? arguments[1] : "";
  if (count == 1) return conducted();
  if (first == "--probe" && count == 3) return probe(arguments[2]);
  if (first == "--wake-up" && count == 4) return wake_up(arguments[2], arguments[3]);
  if (first == "--version" && count == 2) return std::printf("lagometer-worker %s\n", LAGOMETER_VERSION) > 0 ? 0 : 1;
  const bool asked = first == "--help" && count == 2;
  std::fputs(kHelp, asked ? stdout : stderr);
  return asked ? 0 : 2;
}

}  // namespace
}  // namespace lagometer::engine

int main(int count, char** arguments) { return lagometer::engine::run(count, arguments); }
