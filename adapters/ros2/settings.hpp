// SPDX-License-Identifier: Apache-2.0
// What a study can configure in ROS 2: the options of adapter.json, and the quality of service in its terms. Does not
// use rclcpp, so that it can be compiled and tested without it.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "binding.hpp"

namespace lagometer::ros2 {

/// Which of rclcpp's executors calls a listener's callbacks.
enum class ExecutorKind : uint8_t { kSingleThreaded, kStaticSingleThreaded, kMultiThreaded, kEvents };

struct Settings {
  std::string rmw;  // as RMW_IMPLEMENTATION; empty: as in the environment, or ROS 2's default
  ExecutorKind executor = ExecutorKind::kSingleThreaded;
  uint32_t executor_threads = 0;       // for the multi-threaded one; 0: as many as there are CPUs, at least 2
  bool group_for_each_reader = false;  // callbacks of one node may run at the same time
  bool executor_timers = true;         // for a node that is called back: the executor fires its timers
  bool intra_process = false;
  bool loans = false;
  int64_t deadline_ns = 0;          // of every publisher and subscription; 0: none
  int64_t lifespan_ns = 0;          // of every publisher; 0: none
  int64_t liveliness_lease_ns = 0;  // of every publisher and subscription; 0: none
  bool manual_liveliness = false;   // by topic: publishing shows that the writer is alive

  /// From the profile ("default", "matched") and the options of a context. Throws lagometer::Error.
  static Settings from(std::string_view profile, std::string_view options);
  /// Its name in C++.
  [[nodiscard]] std::string executor_class() const;
};

/// The quality of service; policies that are not requested are as in rclcpp::QoS(10). The options apply to the whole
/// study; an endpoint's own policies take precedence. Throws lagometer::Error for policies that ROS 2 does not have.
struct Quality {
  explicit Quality(const lagometer_qos* wanted, const Settings& settings = {});
  bool reliable = true;
  bool keep_all = false;
  uint32_t depth = 10;
  bool transient_local = false;
  int64_t deadline_ns = 0;  // for this and the next two: 0 means none
  int64_t lifespan_ns = 0;
  int64_t liveliness_lease_ns = 0;
  bool manual_liveliness = false;

  /// Whether there is a policy that the rmw must monitor.
  [[nodiscard]] bool watched() const { return deadline_ns != 0 || lifespan_ns != 0 || liveliness_lease_ns != 0; }
  /// A line of C++ that creates it.
  [[nodiscard]] std::string code() const;
  /// The policies that an endpoint requests, as settings.
  [[nodiscard]] nlohmann::json describe() const;
};

/// Rejects what rclcpp's intra-process communication can't do. Throws lagometer::Error.
void check_intra_process(const Quality& quality, uint32_t dispatch, const std::string& topic);

/// Rejects what ROS 2 services do not have; `topic`: the service's name. Throws lagometer::Error.
void check_service(const Settings& settings, const Quality& request, const Quality& reply, const std::string& topic);

/// {key: {"value", "default"}}.
nlohmann::json setting(const nlohmann::json& value, const nlohmann::json& usual);

/// The value of an environment variable; none if it is empty or not set.
std::optional<std::string> variable(const char* name);

/// The variables of ROS 2 that keep a context to the link between two hosts. network: of a context's configuration;
/// none without an address there. A CYCLONEDDS_URI of the shell stays as it is. Throws Error(LAGOMETER_INVALID).
std::map<std::string, std::string> link_variables(std::string_view network);

/// The transports that FASTDDS_BUILTIN_TRANSPORTS chooses for rmw_fastrtps_cpp; none if it is not set or without
/// effect.
std::optional<std::string> builtin_transports();

/// What carries this rmw's messages, as far as it is known from outside: the member "transport" of describe(); null for
/// an rmw that nobody has examined, and for a choice of transports that can't be told.
nlohmann::json transport_of(std::string_view rmw);

}  // namespace lagometer::ros2
