// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace lagometer::ros2 {
namespace {

using nlohmann::json;

constexpr uint32_t kThreadsMax = 1024;
constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

[[noreturn]] void refuse(const std::string& key, const json& value, const std::string& wanted) {
  throw Error(LAGOMETER_INVALID, "ros2: option " + key + " must be " + wanted + ", not " + value.dump());
}

bool boolean(const std::string& key, const json& value) {
  if (!value.is_boolean()) refuse(key, value, "true or false");
  return value.get<bool>();
}

bool first_of(const std::string& key, const json& value, const char* first, const char* second) {
  if (value == first) return true;
  if (value == second) return false;
  refuse(key, value, std::string(first) + " or " + second);
}

ExecutorKind executor_kind(const json& value) {
  if (value == "single_threaded") return ExecutorKind::kSingleThreaded;
  if (value == "static_single_threaded") return ExecutorKind::kStaticSingleThreaded;
  if (value == "multi_threaded") return ExecutorKind::kMultiThreaded;
  if (value == "events") return ExecutorKind::kEvents;
  refuse("executor", value, "single_threaded, static_single_threaded, multi_threaded or events");
}

std::string rmw_name(const json& value) {
  const auto allowed = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
  };
  std::string name = value.is_string() ? value.get<std::string>() : "";
  if (value.is_null() || name == "default") return {};
  // It becomes the name of a library.
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed))
    refuse("rmw", value, "default, or the name of an rmw implementation such as rmw_cyclonedds_cpp");
  return name;
}

uint32_t thread_count(const json& value) {
  if (value.is_null()) return 0;
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > kThreadsMax)
    refuse("executor_threads", value, "a whole number from 1 to " + std::to_string(kThreadsMax));
  return value.get<uint32_t>();
}

int64_t nanoseconds(const std::string& key, const json& value) {
  if (value.is_null()) return 0;
  if (!value.is_number_unsigned() || value.get<uint64_t>() < 1 || value.get<uint64_t>() > INT32_MAX)
    refuse(key, value, "a whole number from 1 to " + std::to_string(INT32_MAX));
  return value.get<int64_t>() * kNanosecondsPerMillisecond;
}

void apply(const std::string& key, const json& value, Settings& settings) {
  if (key == "rmw") {
    settings.rmw = rmw_name(value);
  } else if (key == "executor") {
    settings.executor = executor_kind(value);
  } else if (key == "executor_threads") {
    settings.executor_threads = thread_count(value);
  } else if (key == "callback_groups") {
    settings.group_for_each_reader = first_of(key, value, "reader", "node");
  } else if (key == "timers") {
    settings.executor_timers = first_of(key, value, "executor", "node");
  } else if (key == "intra_process") {
    settings.intra_process = boolean(key, value);
  } else if (key == "loans") {
    settings.loans = boolean(key, value);
  } else if (key == "deadline_ms") {
    settings.deadline_ns = nanoseconds(key, value);
  } else if (key == "lifespan_ms") {
    settings.lifespan_ns = nanoseconds(key, value);
  } else if (key == "liveliness_lease_ms") {
    settings.liveliness_lease_ns = nanoseconds(key, value);
  } else if (key == "liveliness") {
    settings.manual_liveliness = first_of(key, value, "manual_by_topic", "automatic");
  } else {
    throw Error(LAGOMETER_INVALID, "ros2: unknown option '" + key +
                                       "'; valid: rmw, executor, executor_threads, callback_groups, timers, "
                                       "intra_process, loans, deadline_ms, lifespan_ms, liveliness, "
                                       "liveliness_lease_ms");
  }
}

int64_t positive(int64_t duration_ns, const std::string& policy) {
  if (duration_ns < 1) throw Error(LAGOMETER_INVALID, "ros2: the " + policy + " must be at least 1 ns");
  return duration_ns;
}

void check_together(const Settings& settings) {
  if (settings.executor_threads != 0 && settings.executor != ExecutorKind::kMultiThreaded)
    throw Error(LAGOMETER_INVALID, "ros2: executor_threads goes with executor multi_threaded alone");
  if (settings.manual_liveliness && settings.liveliness_lease_ns == 0)
    throw Error(LAGOMETER_INVALID,
                "ros2: liveliness manual_by_topic goes with liveliness_lease_ms: without it nobody looks");
  if (settings.intra_process && settings.loans)
    throw Error(LAGOMETER_INVALID, "ros2: with intra_process messages are handed over by pointer: leave out loans");
}

}  // namespace

json setting(const json& value, const json& usual) { return {{"value", value}, {"default", usual}}; }

Settings Settings::from(std::string_view profile, std::string_view options) {
  // Both profiles are the same: what could be matched belongs to the rmw, and is configured in its own files.
  if (!profile.empty() && profile != "default" && profile != "matched")
    throw Error(LAGOMETER_INVALID, "ros2: no profile '" + std::string(profile) + "'; valid: default, matched");
  const json document = options.empty() ? json::object() : json::parse(options, nullptr, false);
  if (!document.is_object()) throw Error(LAGOMETER_INVALID, "ros2: options must be a JSON object");
  Settings settings;
  for (const auto& [key, value] : document.items()) apply(key, value, settings);
  check_together(settings);
  return settings;
}

std::string Settings::executor_class() const {
  switch (executor) {
    case ExecutorKind::kSingleThreaded:
      return "rclcpp::executors::SingleThreadedExecutor";
    case ExecutorKind::kStaticSingleThreaded:
      return "rclcpp::executors::StaticSingleThreadedExecutor";
    case ExecutorKind::kMultiThreaded:
      return "rclcpp::executors::MultiThreadedExecutor";
    case ExecutorKind::kEvents:
      return "rclcpp::experimental::executors::EventsExecutor";
  }
  return "";
}

Quality::Quality(const lagometer_qos* wanted, const Settings& settings)
    : deadline_ns(settings.deadline_ns),
      lifespan_ns(settings.lifespan_ns),
      liveliness_lease_ns(settings.liveliness_lease_ns),
      manual_liveliness(settings.manual_liveliness) {
  if (wanted == nullptr) return;
  constexpr uint64_t kKnown = LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY |
                              LAGOMETER_QOS_DEADLINE | LAGOMETER_QOS_LIFESPAN;
  if ((wanted->present & ~kKnown) != 0) {
    throw Error(
        LAGOMETER_UNSUPPORTED,
        "ros2: of the QoS, reliability, history, durability, deadline and lifespan can be set; liveliness is an "
        "option, and ROS 2 has no partitions");
  }
  if ((wanted->present & LAGOMETER_QOS_RELIABILITY) != 0) reliable = wanted->reliability == LAGOMETER_RELIABLE;
  if ((wanted->present & LAGOMETER_QOS_DURABILITY) != 0)
    transient_local = wanted->durability == LAGOMETER_TRANSIENT_LOCAL;
  if ((wanted->present & LAGOMETER_QOS_DEADLINE) != 0) deadline_ns = positive(wanted->deadline_ns, "deadline");
  if ((wanted->present & LAGOMETER_QOS_LIFESPAN) != 0) lifespan_ns = positive(wanted->lifespan_ns, "lifespan");
  if ((wanted->present & LAGOMETER_QOS_HISTORY) == 0) return;
  keep_all = wanted->history == LAGOMETER_KEEP_ALL;
  if (keep_all) return;
  depth = wanted->depth;
  if (depth < 1 || depth > INT32_MAX)
    throw Error(LAGOMETER_INVALID, "ros2: the depth must be from 1 to " + std::to_string(INT32_MAX));
}

std::string Quality::code() const {
  const std::string history = keep_all ? "rclcpp::KeepAll()" : std::to_string(depth);
  std::string result = "rclcpp::QoS(" + history + ")" + (reliable ? ".reliable()" : ".best_effort()") +
                       (transient_local ? ".transient_local()" : ".durability_volatile()");
  const auto add = [&result](const char* policy, int64_t duration_ns) {
    if (duration_ns == 0) return;
    result += std::string(".") + policy + "(rclcpp::Duration::from_nanoseconds(" + std::to_string(duration_ns) + "))";
  };
  add("deadline", deadline_ns);
  add("lifespan", lifespan_ns);
  if (manual_liveliness) result += ".liveliness(rclcpp::LivelinessPolicy::ManualByTopic)";
  add("liveliness_lease_duration", liveliness_lease_ns);
  return result;
}

json Quality::describe() const {
  json settings{{"qos", setting(code(), Quality(nullptr).code())}};
  const auto put = [&settings](const char* name, int64_t duration_ns) {
    if (duration_ns != 0) settings[name] = setting(duration_ns, "none");
  };
  put("deadline_ns", deadline_ns);
  put("lifespan_ns", lifespan_ns);
  put("liveliness_lease_ns", liveliness_lease_ns);
  if (manual_liveliness) settings["liveliness"] = setting("manual_by_topic", "automatic");
  return settings;
}

void check_intra_process(const Quality& quality, uint32_t dispatch, const std::string& topic) {
  if (quality.keep_all || quality.transient_local) {
    throw Error(LAGOMETER_UNSUPPORTED, "ros2: intra_process takes keep_last and volatile alone: topic " + topic);
  }
  if (quality.watched()) {
    throw Error(LAGOMETER_UNSUPPORTED,
                "ros2: what is handed over within a process passes by the rmw, which watches deadlines, lifespans and "
                "liveliness: leave out intra_process or these: topic " +
                    topic);
  }
  if (dispatch != LAGOMETER_DISPATCH_LISTENER) {
    throw Error(LAGOMETER_UNSUPPORTED,
                "ros2: what is handed over within a process goes to callbacks alone: dispatch by listener on " + topic);
  }
}

void check_service(const Settings& settings, const Quality& request, const Quality& reply, const std::string& topic) {
  const auto refuse = [&topic](const std::string& why) {
    throw Error(LAGOMETER_UNSUPPORTED, "ros2: " + why + ": service " + topic);
  };
  if (request.watched() || reply.watched())
    refuse("rclcpp reports no deadlines, lifespans or liveliness of services: leave these out");
  if (request.code() != reply.code()) refuse("requests and replies of a service of ROS 2 have the same QoS");
  if (settings.intra_process) refuse("intra_process hands over messages of topics alone: leave it out");
  if (settings.loans) refuse("the rmw lends memory for messages of topics alone: leave out loans");
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::map<std::string, std::string> link_variables(std::string_view network) {
  const nlohmann::json link = nlohmann::json::parse(network.empty() ? "{}" : network, nullptr, false);
  if (!link.is_object()) throw Error(LAGOMETER_INVALID, "ros2: network must be a JSON object");
  const auto address = link.find("address");
  if (address == link.end()) return {};
  if (!address->is_string()) throw Error(LAGOMETER_INVALID, "ros2: network key address must be a text");
  std::map<std::string, std::string> found{{"ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET"}};
  if (!variable("CYCLONEDDS_URI")) {
    found["CYCLONEDDS_URI"] = "<CycloneDDS><Domain><General><Interfaces><NetworkInterface address=\"" +
                              address->get<std::string>() + "\"/></Interfaces></General></Domain></CycloneDDS>";
  }
  return found;
}

std::optional<std::string> builtin_transports() {
  // Confined to the local host, rmw_fastrtps_cpp makes its own transports, whatever this variable says.
  if (variable("ROS_AUTOMATIC_DISCOVERY_RANGE") == "LOCALHOST") return std::nullopt;
  return variable("FASTDDS_BUILTIN_TRANSPORTS");
}

json transport_of(std::string_view rmw) {
  const auto between = [](json kinds) -> json {
    return {{"within_process", {"process"}}, {"between_processes", std::move(kinds)}};
  };
  if (rmw == "rmw_cyclonedds_cpp") return between({"udp"});
  if (rmw != "rmw_fastrtps_cpp") return nullptr;
  // A file of profiles may choose any transport.
  if (variable("FASTRTPS_DEFAULT_PROFILES_FILE") || variable("FASTDDS_DEFAULT_PROFILES_FILE")) return nullptr;
  const std::string chosen = builtin_transports().value_or("DEFAULT");
  if (chosen == "DEFAULT") return between({"shared-memory", "udp"});
  if (chosen == "UDPv4" || chosen == "UDPv6") return between({"udp"});
  if (chosen == "SHM") return between({"shared-memory"});
  return nullptr;
}

}  // namespace lagometer::ros2
