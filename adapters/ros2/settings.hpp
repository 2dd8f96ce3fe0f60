// SPDX-License-Identifier: Apache-2.0
// What a study may set of ROS 2: the options of adapter.json, and the quality of service in its terms. Knows nothing of
// rclcpp, so that it is compiled and tested where there is none.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "binding.hpp"

namespace lagometer::ros2 {

/// Which of rclcpp's executors calls the callbacks of a listener.
enum class ExecutorKind : uint8_t { kSingleThreaded, kStaticSingleThreaded, kMultiThreaded, kEvents };

struct Settings {
  std::string rmw;  // as RMW_IMPLEMENTATION; empty: as the environment says, or ROS 2's default
  ExecutorKind executor = ExecutorKind::kSingleThreaded;
  uint32_t executor_threads = 0;       // of the multi-threaded one; 0: as many as there are CPUs, at least 2
  bool group_for_each_reader = false;  // callbacks of one node may run at the same time
  bool executor_timers = true;         // of a node that is called back: its timers are the executor's
  bool intra_process = false;
  bool loans = false;
  int64_t deadline_ns = 0;          // of every publisher and subscription; 0: none
  int64_t lifespan_ns = 0;          // of every publisher; 0: none
  int64_t liveliness_lease_ns = 0;  // of every publisher and subscription; 0: none
  bool manual_liveliness = false;   // by topic: who publishes is alive

  /// From the profile ("default", "matched") and the options of a context. Throws lagometer::Error.
  static Settings from(std::string_view profile, std::string_view options);
  /// As C++ calls it.
  [[nodiscard]] std::string executor_class() const;
};

/// The quality of service; what is not asked for is as rclcpp::QoS(10) has it. The options are for the whole study,
/// what an endpoint asks for counts for more. Throws lagometer::Error for what ROS 2 hasn't got.
struct Quality {
  explicit Quality(const lagometer_qos* wanted, const Settings& settings = {});
  bool reliable = true;
  bool keep_all = false;
  uint32_t depth = 10;
  bool transient_local = false;
  int64_t deadline_ns = 0;  // this and the next two: 0: none
  int64_t lifespan_ns = 0;
  int64_t liveliness_lease_ns = 0;
  bool manual_liveliness = false;

  /// Whether there is a policy that the rmw must watch.
  [[nodiscard]] bool watched() const { return deadline_ns != 0 || lifespan_ns != 0 || liveliness_lease_ns != 0; }
  /// A line of C++ that makes it.
  [[nodiscard]] std::string code() const;
  /// The policies that an endpoint asks for, as settings.
  [[nodiscard]] nlohmann::json describe() const;
};

/// Refuses what rclcpp's intra-process communication can't do. Throws lagometer::Error.
void check_intra_process(const Quality& quality, uint32_t dispatch, const std::string& topic);

/// Refuses what services of ROS 2 have not got; `topic`: the service's name. Throws lagometer::Error.
void check_service(const Settings& settings, const Quality& request, const Quality& reply, const std::string& topic);

/// {key: {"value", "default"}}.
nlohmann::json setting(const nlohmann::json& value, const nlohmann::json& usual);

/// What carries messages of this rmw, as far as it is known from outside: the member "transport" of describe(); null
/// for one that nobody has looked at.
nlohmann::json transport_of(std::string_view rmw);

}  // namespace lagometer::ros2
