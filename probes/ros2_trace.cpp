// SPDX-License-Identifier: Apache-2.0
// Intercepts the functions through which ROS 2 reports to a tracer (tracetools). Their names and arguments are
// generated from its headers. All arguments are passed in registers, so they are passed on even if the real function
// has fewer. The distribution is determined once, at the first call, from the library's functions and from the version
// next to it. If the two don't agree on one distribution, nothing is stamped, and the reason is recorded.
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "declaration.hpp"
#include "journal.hpp"
#include "next.hpp"
#include "ros2_trace_functions.hpp"

namespace lagometer::probes {
namespace {

/// What each function stamps; 0: nothing. A spinning executor calls `rclcpp_executor_wait_for_work` and
/// `…_get_next_ready` a million times a second, and no layer begins or ends there.
constexpr uint16_t call_of(Trace trace) noexcept {
  switch (trace) {
    case Trace::rclcpp_publish:
      return static_cast<uint16_t>(Call::rclcpp_publish);
    case Trace::rcl_publish:
      return static_cast<uint16_t>(Call::rcl_publish);
    case Trace::rmw_publish:
      return static_cast<uint16_t>(Call::rmw_publish);
    case Trace::rmw_take:
      return static_cast<uint16_t>(Call::rmw_take);
    case Trace::rcl_take:
      return static_cast<uint16_t>(Call::rcl_take);
    case Trace::rclcpp_take:
      return static_cast<uint16_t>(Call::rclcpp_take);
    case Trace::callback_start:
      return static_cast<uint16_t>(Call::callback_start);
    case Trace::callback_end:
      return static_cast<uint16_t>(Call::callback_end);
    case Trace::rclcpp_executor_execute:
      return static_cast<uint16_t>(Call::executor_execute);
    case Trace::rclcpp_intra_publish:
      return static_cast<uint16_t>(Call::rclcpp_intra_publish);
    case Trace::rcl_node_init:
      return static_cast<uint16_t>(Call::ros2_node);
    case Trace::rcl_publisher_init:
      return static_cast<uint16_t>(Call::ros2_publisher);
    case Trace::rcl_subscription_init:
      return static_cast<uint16_t>(Call::ros2_subscription);
    default:
      return 0;
  }
}

// --- which distribution it is ---

struct Version {
  bool known;
  unsigned major;
  unsigned minor;
  std::array<char, 32> text;
};

/// The version in a package.xml.
bool read_version(const char* path, Version& version) noexcept {
  // Not by open(), in which a cancelled thread would end.
  const long descriptor = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  std::array<char, 4096> text;
  const long size = syscall(SYS_read, descriptor, text.data(), text.size() - 1);
  static_cast<void>(syscall(SYS_close, descriptor));
  if (size <= 0) return false;
  text[static_cast<size_t>(size)] = '\0';
  constexpr std::string_view kBefore = "<version>";
  const char* at = std::strstr(text.data(), kBefore.data());
  if (at == nullptr) return false;
  at += kBefore.size();
  const size_t length = std::strcspn(at, "<");
  if (length >= version.text.size()) return false;
  std::memcpy(version.text.data(), at, length);
  version.text[length] = '\0';
  char* end = nullptr;
  version.major = static_cast<unsigned>(std::strtoul(version.text.data(), &end, 10));
  version.known = *end == '.';
  if (version.known) version.minor = static_cast<unsigned>(std::strtoul(end + 1, nullptr, 10));
  return version.known;
}

/// The version of the package that installed a library: PREFIX/lib/…/libtracetools.so, PREFIX/share/….
Version version_beside(const void* function) noexcept {
  Version version{};
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return version;
  std::array<char, 4096> path;
  constexpr std::string_view kPackage = "/share/tracetools/package.xml";
  const size_t length = std::strlen(info.dli_fname);
  if (length + kPackage.size() >= path.size()) return version;
  std::memcpy(path.data(), info.dli_fname, length + 1);
  constexpr int kFoldersUp = 3;
  for (int up = 0; up < kFoldersUp; ++up) {
    char* const slash = std::strrchr(path.data(), '/');
    if (slash == nullptr) break;
    std::memcpy(slash, kPackage.data(), kPackage.size() + 1);
    if (up > 0 && read_version(path.data(), version)) break;
    *slash = '\0';
  }
  return version;
}

/// The distribution with this version; null: not known.
const Distribution* of_version(const Version& version) noexcept {
  const Distribution* found = nullptr;
  for (const Distribution& each : kDistributions)
    if (version.major > each.major || (version.major == each.major && version.minor >= each.minor)) found = &each;
  return version.major < kKnownBeforeMajor ? found : nullptr;
}

using Reason = std::array<char, kTextMax>;

/// Null: not determined, with the reason.
const Distribution* distribution(uint64_t functions, const Version& version, Reason& reason) noexcept {
  const Distribution* by_functions = nullptr;
  const Distribution* another = nullptr;
  for (const Distribution& each : kDistributions) {
    if (each.functions != functions) continue;
    if (by_functions != nullptr) another = by_functions;
    by_functions = &each;
  }
  if (by_functions == nullptr) {
    std::snprintf(reason.data(), reason.size(), "the functions of its tracetools%s%s are those of no known release",
                  version.known ? " " : "", version.text.data());
    return nullptr;
  }
  if (!version.known) {
    if (another == nullptr) return by_functions;
    std::snprintf(reason.data(), reason.size(),
                  "its tracetools may be that of %s or %s, which give rmw_publish other arguments, and no package.xml "
                  "beside it says its version",
                  another->name.data(), by_functions->name.data());
    return nullptr;
  }
  const Distribution* const by_version = of_version(version);
  if (by_version == nullptr) {
    std::snprintf(reason.data(), reason.size(), "tracetools %s is not known", version.text.data());
    return nullptr;
  }
  if (by_version->functions != functions) {
    std::snprintf(reason.data(), reason.size(), "tracetools %s is that of %s, but its functions are those of %s%s%s",
                  version.text.data(), by_version->name.data(), another != nullptr ? another->name.data() : "",
                  another != nullptr ? " or " : "", by_functions->name.data());
    return nullptr;
  }
  return by_version;
}

enum class State : uint8_t { unknown, asked, refused, accepted };
std::atomic<State> state{State::unknown};
std::atomic<bool> is_told{false};  // in this process's file
std::atomic<const Distribution*> accepted{nullptr};
Version version;  // these two are written before `state` says so
Reason reason;

void tell() noexcept {
  Entered entered;
  entered.left();
  const Distribution* const found = accepted.load(std::memory_order_relaxed);
  Declaration declaration;
  if (found != nullptr) declaration.text(0, found->name.data(), found->name.size());
  declaration.text(1, version.text.data(), std::strlen(version.text.data()));
  declaration.text(2, reason.data(), std::strlen(reason.data()));
  declaration.write(entered, Call::ros2, 0, 0);
}

void ask(void* caller, const void* function) noexcept {
  uint64_t functions = 0;
  for (size_t at = 0; at < kTraces; ++at)
    if (function_of(caller, kTraceFunctions[at]) != nullptr) functions |= uint64_t{1} << at;
  version = version_beside(function);
  const Distribution* const found = distribution(functions, version, reason);
  accepted.store(found, std::memory_order_relaxed);
  state.store(found != nullptr ? State::accepted : State::refused, std::memory_order_release);
}

/// A child has its own file, and knows what its parent found out.
__attribute__((constructor)) void watch_forks() {
  static_cast<void>(pthread_atfork(nullptr, nullptr, [] { is_told.store(false, std::memory_order_relaxed); }));
}

/// Whether calls are stamped. function: the library's own function that is called.
bool is_stamped(void* caller, const void* function) noexcept {
  if (!is_on() || function == nullptr) return false;
  State known = state.load(std::memory_order_acquire);
  if (known == State::unknown) {
    if (state.compare_exchange_strong(known, State::asked, std::memory_order_acq_rel)) ask(caller, function);
    known = state.load(std::memory_order_acquire);
  }
  if (known < State::refused) return false;  // another thread is asking
  if (!is_told.load(std::memory_order_relaxed) && !is_told.exchange(true, std::memory_order_relaxed)) tell();
  return known == State::accepted;
}

// --- the calls ---

template <typename Argument>
uint64_t number_of(Argument argument) noexcept {
  if constexpr (std::is_pointer_v<Argument>)
    return reinterpret_cast<uint64_t>(argument);
  else
    return static_cast<uint64_t>(argument);
}

void write_node(const Entered& entered, const void* node, const void* rmw, const char* name,
                const char* name_space) noexcept {
  Declaration declaration;
  if (name != nullptr) declaration.text(0, name, strnlen(name, kTextMax));
  if (name_space != nullptr) declaration.text(1, name_space, strnlen(name_space, kTextMax));
  declaration.write(entered, Call::ros2_node, number_of(node), number_of(rmw));
}

void write_endpoint(const Entered& entered, Call call, const void*, const void*, const void* rmw, const char* topic,
                    size_t) noexcept {
  Declaration declaration;
  if (topic != nullptr) declaration.text(0, topic, strnlen(topic, kTextMax));
  declaration.write(entered, call, number_of(rmw), 0);
}

template <Trace trace, typename... Arguments>
void write(const Entered& entered, Arguments... given) noexcept {
  const std::array<uint64_t, sizeof...(given) + 3> numbers{number_of(given)...};
  CallRecord record{};
  record.descriptor = -1;
  record.object = numbers[0];
  record.connection = numbers[1];
  record.result = static_cast<int64_t>(numbers[2]);
  if constexpr (trace == Trace::rmw_publish) {  // only the message, up to Iron
    if (accepted.load(std::memory_order_relaxed)->publish_arguments == 1) {
      record.object = 0;
      record.connection = numbers[0];
      record.result = 0;
    }
  }
  if constexpr (trace == Trace::rmw_take) {
    if (static_cast<uint8_t>(numbers[3]) == 0) return;  // nothing was taken
  }
  if constexpr (trace == Trace::rcl_take || trace == Trace::rclcpp_take) {
    record.connection = numbers[0];
    record.object = 0;
  }
  if constexpr (trace == Trace::rcl_node_init) {
    write_node(entered, given...);
    return;
  }
  if constexpr (trace == Trace::rcl_publisher_init || trace == Trace::rcl_subscription_init) {
    write_endpoint(entered, static_cast<Call>(call_of(trace)), given...);
    return;
  }
  entered.write(static_cast<Call>(call_of(trace)), record);
}

template <Trace trace, typename Function, typename... Arguments>
void traced(NextOfProcess& next, NextOfProcess* enabled, void* caller, Arguments... given) {
  void* const function = next.get(caller);
  const bool stamped = call_of(trace) != 0 && is_stamped(caller, function);
  bool wanted = function != nullptr;
  if (wanted && enabled != nullptr) {  // the caller asked us, so it does not know the real answer
    void* const asked = enabled->get(caller);
    wanted = asked == nullptr || reinterpret_cast<bool (*)()>(asked)();
  }
  if (!stamped) {
    if (wanted) reinterpret_cast<Function*>(function)(given...);
    return;
  }
  Entered entered;
  if (wanted) reinterpret_cast<Function*>(function)(given...);
  entered.left();
  write<trace>(entered, given...);
}

template <Trace trace>
bool is_enabled(NextOfProcess& next, void* caller) {
  void* const function = next.get(caller);
  if (call_of(trace) != 0 && is_stamped(caller, function)) return true;
  return function != nullptr && reinterpret_cast<bool (*)()>(function)();
}

}  // namespace
}  // namespace lagometer::probes

using namespace lagometer::probes;

#define LAGOMETER_CALLER __builtin_return_address(0)
#define LAGOMETER_PLAIN(...) __VA_OPT__(, ) __VA_ARGS__
#define LAGOMETER_TRACED(name, typed, plain)                                                 \
  LAGOMETER_PROBE bool ros_trace_enabled_##name() {                                          \
    static constinit NextOfProcess next("ros_trace_enabled_" #name);                         \
    return is_enabled<Trace::name>(next, LAGOMETER_CALLER);                                  \
  }                                                                                          \
  LAGOMETER_PROBE void ros_trace_##name typed {                                              \
    static constinit NextOfProcess next("ros_trace_" #name);                                 \
    traced<Trace::name, void typed>(next, nullptr, LAGOMETER_CALLER LAGOMETER_PLAIN plain);  \
  }                                                                                          \
  LAGOMETER_PROBE void ros_trace_do_##name typed {                                           \
    static constinit NextOfProcess next("ros_trace_do_" #name);                              \
    static constinit NextOfProcess enabled("ros_trace_enabled_" #name);                      \
    traced<Trace::name, void typed>(next, &enabled, LAGOMETER_CALLER LAGOMETER_PLAIN plain); \
  }

LAGOMETER_ROS2_FUNCTIONS(LAGOMETER_TRACED)
