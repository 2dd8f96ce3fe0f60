// SPDX-License-Identifier: Apache-2.0
// lagometer-supervisor: the first process of a trial. It creates the trial's private machine, starts its workers,
// reports when they end, and takes everything down with itself: if the conductor dies, so do this and the workers.
//
// Standard input: one JSON line
// {"network":"private|host","workers":[{"argv":[…],"environment":{…},"stdin":n,"stdout":n, "stderr":n,"records":n}],
//  "companions":[{"argv":[…],"environment":{…},"daemon":bool,"output":n}],"prepared":{"directory":text,
//  "files":{name:text}},"lease_ms":n,"leaves":{"directory":text,"shared_memory":[patterns],"message_queues":[patterns]}}
// with inherited descriptors; end of file means: kill all and end. Standard output, JSON lines: isolated, started,
// stopped (signal), exited (code | signal), finished (warnings); or failed. `leaves`, on the host's network: the files
// in /dev/shm and the message queues that belong to the trial and must be removed. `companions`: programs next to the
// workers, started before them in their own sessions, ended after them and after the line "end"; companion-started
// (pid), companion-exited (code | signal). If some companions are daemons, only these start at once, and everything
// else after the line "start". `lease_ms`: everything ends if the line "lease" does not come for this long, 0 for
// never; the starting process may be stopped, and then nothing closes the standard input. `prepared`: files that exist
// in the trial's folder before anything starts. Each worker and companion may have a `group`: cgroup.procs of its own.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "descriptors.hpp"
#include "execute.hpp"
#include "message_queues.hpp"
#include "namespaces.hpp"
#include "shared_memory.hpp"

namespace lagometer::supervisor {
namespace {

using nlohmann::json;

struct WorkerCommand {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  int input = -1;
  int output = -1;
  int error = -1;
  int records = -1;
  std::string group;
};

struct CompanionCommand {
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  int output = -1;
  bool daemon = false;
  std::string group;
};

void say(const json& message) {
  const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < line.size();) {
    const ssize_t written = write(STDOUT_FILENO, line.data() + at, line.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the conductor is gone: end of input will say so, too
    at += static_cast<size_t>(written);
  }
}

std::string read_line() {
  std::string line;
  char letter = 0;
  for (ssize_t count = 0;;) {
    count = read(STDIN_FILENO, &letter, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw std::runtime_error("standard input: expected a specification, got nothing");
    if (letter == '\n') return line;
    line += letter;
  }
}

std::vector<WorkerCommand> parse_workers(const json& specification) {
  std::vector<WorkerCommand> workers;
  for (const json& item : specification.at("workers")) {
    WorkerCommand worker;
    worker.arguments = item.at("argv").get<std::vector<std::string>>();
    worker.environment = item.value("environment", std::map<std::string, std::string>());
    worker.input = item.at("stdin").get<int>();
    worker.output = item.at("stdout").get<int>();
    worker.error = item.at("stderr").get<int>();
    worker.records = item.value("records", -1);
    worker.group = item.value("group", std::string());
    if (worker.arguments.empty()) throw std::runtime_error("a worker without argv");
    workers.push_back(std::move(worker));
  }
  return workers;
}

std::vector<CompanionCommand> parse_companions(const json& specification) {
  std::vector<CompanionCommand> companions;
  for (const json& item : specification.value("companions", json::array())) {
    companions.push_back({.arguments = item.at("argv").get<std::vector<std::string>>(),
                          .environment = item.value("environment", std::map<std::string, std::string>()),
                          .output = item.at("output").get<int>(),
                          .daemon = item.value("daemon", false),
                          .group = item.value("group", std::string())});
    if (companions.back().arguments.empty()) throw std::runtime_error("a companion without argv");
  }
  return companions;
}

/// Creates the trial's folder and writes the files that daemons read.
void prepare(const json& specification) {
  const auto found = specification.find("prepared");
  if (found == specification.end()) return;
  const std::filesystem::path directory = found->at("directory").get<std::string>();
  std::filesystem::create_directories(directory);
  for (const auto& [name, text] : found->at("files").get<std::map<std::string, std::string>>()) {
    const std::filesystem::path path = directory / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream file(path);
    file << text;
    file.flush();
    if (!file) throw std::runtime_error("can't write " + path.string() + ": " + std::strerror(errno));
    // They may include a participant's key.
    std::filesystem::permissions(path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  }
}

/// The living children of this process, including orphans it inherited.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line;
    std::getline(std::ifstream(entry->path() / "stat"), line);
    // "pid (name) state parent …", and the name may contain anything
    const size_t behind = line.rfind(')');
    if (behind == std::string::npos || behind + 4 >= line.size()) continue;
    if (std::atoi(line.c_str() + behind + 4) == getpid()) found.push_back(std::atoi(name.c_str()));
  }
  return found;
}

/// In the child, after fork: never returns.
[[noreturn]] void become_companion(const CompanionCommand& companion, pid_t supervisor) {
  detach(supervisor);
  setsid();  // so that its own children can be ended with it
  const int output = out_of_the_way(companion.output, "output", STDERR_FILENO);
  place(output, STDERR_FILENO, "standard error");
  place(output, STDOUT_FILENO, "standard output");
  close_from(kRecords);  // leaves room for one more
  const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0) refuse("/dev/null can't be opened");
  place(nothing, STDIN_FILENO, "standard input");
  close(nothing);
  std::signal(SIGPIPE, SIG_DFL);
  for (const auto& [name, value] : companion.environment) setenv(name.c_str(), value.c_str(), 1);
  execute(companion.arguments, companion.group);
}

/// In the child, after fork: never returns.
[[noreturn]] void become(const WorkerCommand& worker, pid_t supervisor) {
  detach(supervisor);
  const int error = out_of_the_way(worker.error, "standard error", STDERR_FILENO);
  const int input = out_of_the_way(worker.input, "standard input", error);
  const int output = out_of_the_way(worker.output, "standard output", error);
  const int records = worker.records < 0 ? -1 : out_of_the_way(worker.records, "memory for records", error);
  place(error, STDERR_FILENO, "standard error");
  place(input, STDIN_FILENO, "standard input");
  place(output, STDOUT_FILENO, "standard output");
  if (records >= 0) {
    place(records, kRecords, "memory for records");
    setenv("LAGOMETER_RECORDS_FD", std::to_string(kRecords).c_str(), 1);
  }
  close_from(records >= 0 ? kFirstFree : kRecords);
  for (const auto& [name, value] : worker.environment) setenv(name.c_str(), value.c_str(), 1);
  execute(worker.arguments, worker.group);
}

int64_t monotonic_ms() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
}

class Supervisor {
 public:
  /// lease_ms: everything ends if the line "lease" does not come for this long; 0: never.
  Supervisor(std::vector<WorkerCommand> workers, std::vector<CompanionCommand> companions, int64_t lease_ms)
      : workers_(std::move(workers)),
        companions_(std::move(companions)),
        lease_ms_(lease_ms),
        lease_end_ms_(monotonic_ms() + lease_ms) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  ~Supervisor() { kill_all(); }

  /// Returns when no worker is running.
  void run() {
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, nullptr);
    const int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0) throw std::runtime_error("can't watch the workers: " + std::string(std::strerror(errno)));
    start_companions(true);
    awaiting_start_ = !companion_pids_.empty();
    if (!awaiting_start_) start_rest();
    reap();
    // The companions keep running until the conductor has looked at them.
    while (awaiting_start_ || running_ > 0 || (!released_ && !companion_pids_.empty())) {
      wait_once(signals, lease_ms_ > 0 ? static_cast<int>(std::max<int64_t>(0, lease_end_ms_ - monotonic_ms())) : -1);
      if (lease_ms_ > 0 && monotonic_ms() >= lease_end_ms_) kill_all();
    }
    end_companions(signals);
    end_what_daemons_left();
    close(signals);
  }

 private:
  static constexpr int64_t kCompanionGrace_ms = 2000;

  /// Waits for a process to end or for the conductor, at most this long; negative: without limit.
  void wait_once(int signals, int timeout_ms) {
    pollfd events[2] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                        {.fd = signals, .events = POLLIN, .revents = 0}};
    if (poll(events, 2, timeout_ms) < 0 && errno != EINTR)
      throw std::runtime_error("poll: " + std::string(std::strerror(errno)));
    if (events[1].revents != 0) {
      signalfd_siginfo information;
      while (read(signals, &information, sizeof information) > 0) {
      }
      reap();
    }
    if (events[0].revents != 0) hear();
  }

  /// Handles the conductor's input: start, end, or end of file.
  void hear() {
    char buffer[256];
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return kill_all();
    heard_.append(buffer, static_cast<size_t>(count));
    for (size_t end = 0; (end = heard_.find('\n')) != std::string::npos; heard_.erase(0, end + 1)) {
      if (heard_.compare(0, end, "lease") == 0) {
        lease_end_ms_ = monotonic_ms() + lease_ms_;
        continue;
      }
      const bool start = heard_.compare(0, end, "start") == 0;
      if (!start) released_ = true;
      if (start && awaiting_start_) start_rest();
      awaiting_start_ = false;
    }
  }

  /// Asks the companions to end, so that they report what they did, and kills those that don't end.
  void end_companions(int signals) {
    for (const auto& [pid, unused] : companion_pids_) kill(pid, SIGTERM);
    const int64_t deadline_ms = monotonic_ms() + kCompanionGrace_ms;
    while (!companion_pids_.empty() && monotonic_ms() < deadline_ms)
      wait_once(signals, static_cast<int>(deadline_ms - monotonic_ms()));
    kill_companions();
  }

  /// Including everything that they started: they lead their own sessions.
  void kill_companions() {
    for (const auto& [pid, unused] : companion_pids_) {
      kill(-pid, SIGKILL);
      kill(pid, SIGKILL);  // it may not lead its session yet
    }
    for (const auto& [pid, unused] : companion_pids_) waitpid(pid, nullptr, 0);
    companion_pids_.clear();
  }

  /// A daemon's processes may have left its session. Their parent is gone, so they are children of this process by now.
  /// In own namespaces they would end with it; on the host's network nobody else ends them.
  void end_what_daemons_left() {
    if (!has_daemons_) return;
    for (std::vector<pid_t> left = children(); !left.empty(); left = children()) {
      for (const pid_t pid : left) kill(pid, SIGKILL);
      for (const pid_t pid : left) waitpid(pid, nullptr, 0);
    }
  }

  void start_companions(bool daemons) {
    const pid_t self = getpid();
    for (size_t index = 0; index < companions_.size(); ++index) {
      if (companions_[index].daemon != daemons) continue;
      has_daemons_ = has_daemons_ || daemons;
      const pid_t pid = fork();
      if (pid < 0) throw std::runtime_error("can't fork: " + std::string(std::strerror(errno)));
      if (pid == 0) become_companion(companions_[index], self);
      companion_pids_[pid] = index;
      say({{"event", "companion-started"}, {"companion", index}, {"pid", pid}});
    }
  }

  /// Starts the companions that are not daemons, and the workers.
  void start_rest() {
    const pid_t self = getpid();
    start_companions(false);
    for (size_t index = 0; index < workers_.size(); ++index) {
      const pid_t pid = fork();
      if (pid < 0) throw std::runtime_error("can't fork: " + std::string(std::strerror(errno)));
      if (pid == 0) become(workers_[index], self);
      pids_[pid] = index;
      ++running_;
      say({{"event", "started"}, {"worker", index}, {"pid", pid}});
    }
    // Now only the workers hold their pipes: the conductor sees each of them end.
    close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    for (const WorkerCommand& worker : workers_) {
      for (const int descriptor : {worker.input, worker.output, worker.error, worker.records}) {
        if (descriptor > 2) close(descriptor);
      }
    }
    for (const CompanionCommand& companion : companions_) close(companion.output);
  }

  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (note_companion(pid, status)) continue;
      const auto found = pids_.find(pid);
      if (found == pids_.end()) continue;  // an orphan of a worker
      if (WIFSTOPPED(status)) {
        say({{"event", "stopped"}, {"worker", found->second}, {"signal", WSTOPSIG(status)}});
        continue;
      }
      say(with_end({{"event", "exited"}, {"worker", found->second}}, status));
      pids_.erase(found);
      --running_;
    }
  }

  static json with_end(json event, int status) {
    if (WIFSIGNALED(status))
      event["signal"] = WTERMSIG(status);
    else
      event["code"] = WEXITSTATUS(status);
    return event;
  }

  /// Returns whether the process is a companion.
  bool note_companion(pid_t pid, int status) {
    const auto found = companion_pids_.find(pid);
    if (found == companion_pids_.end()) return false;
    if (WIFSTOPPED(status)) return true;
    kill(-pid, SIGKILL);  // what it left behind
    say(with_end({{"event", "companion-exited"}, {"companion", found->second}}, status));
    companion_pids_.erase(found);
    return true;
  }

  void kill_all() {
    for (const auto& [pid, unused] : pids_) kill(pid, SIGKILL);
    for (const auto& [pid, unused] : pids_) waitpid(pid, nullptr, 0);
    pids_.clear();
    running_ = 0;
    awaiting_start_ = false;
    kill_companions();
    end_what_daemons_left();
  }

  std::vector<WorkerCommand> workers_;
  std::vector<CompanionCommand> companions_;
  std::map<pid_t, size_t> companion_pids_;
  std::map<pid_t, size_t> pids_;
  std::string heard_;
  int64_t lease_ms_;
  int64_t lease_end_ms_;
  int running_ = 0;
  bool has_daemons_ = false;
  bool awaiting_start_ = false;
  bool released_ = false;
};

/// Tracks what the trial leaves behind on the host.
class Leaves {
 public:
  using Names = std::vector<std::string>;
  explicit Leaves(const json& named)
      : memory_("/dev/shm", named.value("shared_memory", Names()), named.value("directory", std::string())) {
    const Names queues = named.value("message_queues", Names());
    if (queues.empty()) return;
    queue_folder_.emplace();
    if (!queue_folder_->path().empty()) queues_.emplace(queue_folder_->path(), queues, "", Use::kOpen);
  }
  /// Returns warnings: what could not be removed.
  Names remove() {
    Names warnings = memory_.remove();
    if (queues_) {
      const Names more = queues_->remove();
      warnings.insert(warnings.end(), more.begin(), more.end());
    } else if (queue_folder_) {
      warnings.push_back(queue_folder_->obstacle());
    }
    return warnings;
  }

 private:
  SharedMemory memory_;
  std::optional<MessageQueueFolder> queue_folder_;
  std::optional<SharedMemory> queues_;
};

/// signal: SIGKILL, or 0 to survive.
void die_with_parent(int signal) {
  if (prctl(PR_SET_PDEATHSIG, signal) == 0) return;
  throw std::runtime_error("prctl(PR_SET_PDEATHSIG): " + std::string(std::strerror(errno)));
}

json what_leaves(const json& specification, bool isolated) {
  if (isolated) return json::object();
  // Standard input shows that the conductor has ended; if this process were killed with it, nobody would clean up.
  die_with_parent(0);
  return specification.value("leaves", json::object());
}

int supervise(const json& specification, const Isolation& isolation, bool isolated) {
  say({{"event", "isolated"},
       {"network", isolated},
       {"mount", isolated},
       {"ipc", isolated},
       {"pid", isolated},
       {"user_namespace", isolation.user_namespace},
       {"warnings", isolation.warnings}});
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
    throw std::runtime_error("prctl(PR_SET_CHILD_SUBREAPER): " + std::string(std::strerror(errno)));
  Leaves leaves(what_leaves(specification, isolated));
  prepare(specification);
  const auto lease_ms = specification.value("lease_ms", int64_t{0});
  Supervisor(parse_workers(specification), parse_companions(specification), lease_ms).run();
  say({{"event", "finished"}, {"warnings", leaves.remove()}});
  return 0;
}

/// The outer process waits; the inner one is process 1 of the private machine.
int run_private(const json& specification) {
  Isolation isolation = enter_namespaces();
  const pid_t inner = fork();
  if (inner < 0) throw std::runtime_error("can't fork: " + std::string(std::strerror(errno)));
  if (inner == 0) {
    die_with_parent(SIGKILL);
    furnish(isolation);
    return supervise(specification, isolation, true);
  }
  close_from(kRecords);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  int status = 0;
  while (waitpid(inner, &status, 0) < 0 && errno == EINTR) {
  }
  // Exit at once: there is nothing to undo, and a leak checker could not start its thread here any more, because what
  // this process starts belongs to a PID namespace whose first process is gone.
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int run() {
  const pid_t parent = getppid();
  std::signal(SIGPIPE, SIG_IGN);
  setsid();  // the conductor handles Ctrl-C in the terminal
  try {
    die_with_parent(SIGKILL);
    if (getppid() != parent) return 1;
    const json specification = json::parse(read_line());
    const std::string network = specification.at("network").get<std::string>();
    if (network == "private") return run_private(specification);
    if (network == "host") return supervise(specification, Isolation{}, false);
    throw std::runtime_error("network is '" + network + "', must be private | host");
  } catch (const std::exception& error) {
    say({{"event", "failed"}, {"message", error.what()}});
    return 1;
  }
}

}  // namespace
}  // namespace lagometer::supervisor

int main() { return lagometer::supervisor::run(); }
