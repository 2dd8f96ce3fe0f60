// SPDX-License-Identifier: Apache-2.0
// Made by tools/ros2_trace_table.py from ros2_trace.json.
// clang-format off
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lagometer::probes {

/// ROS 2's trace functions, without `ros_trace_`.
enum class Trace : uint8_t {
  callback_end,
  callback_start,
  message_link_partial_sync,
  message_link_periodic_async,
  rcl_client_init,
  rcl_init,
  rcl_lifecycle_state_machine_init,
  rcl_lifecycle_transition,
  rcl_node_init,
  rcl_publish,
  rcl_publisher_init,
  rcl_service_init,
  rcl_subscription_init,
  rcl_take,
  rcl_timer_init,
  rclcpp_buffer_to_ipb,
  rclcpp_callback_register,
  rclcpp_construct_ring_buffer,
  rclcpp_executor_execute,
  rclcpp_executor_get_next_ready,
  rclcpp_executor_wait_for_work,
  rclcpp_intra_publish,
  rclcpp_ipb_to_subscription,
  rclcpp_publish,
  rclcpp_ring_buffer_clear,
  rclcpp_ring_buffer_dequeue,
  rclcpp_ring_buffer_enqueue,
  rclcpp_service_callback_added,
  rclcpp_subscription_callback_added,
  rclcpp_subscription_init,
  rclcpp_take,
  rclcpp_timer_callback_added,
  rclcpp_timer_link_node,
  rmw_client_init,
  rmw_publish,
  rmw_publisher_init,
  rmw_send_request,
  rmw_send_response,
  rmw_subscription_init,
  rmw_take,
  rmw_take_request,
  rmw_take_response,
};
constexpr size_t kTraces = 42;
constexpr std::array<const char*, kTraces> kTraceFunctions = {
    "ros_trace_callback_end",
    "ros_trace_callback_start",
    "ros_trace_message_link_partial_sync",
    "ros_trace_message_link_periodic_async",
    "ros_trace_rcl_client_init",
    "ros_trace_rcl_init",
    "ros_trace_rcl_lifecycle_state_machine_init",
    "ros_trace_rcl_lifecycle_transition",
    "ros_trace_rcl_node_init",
    "ros_trace_rcl_publish",
    "ros_trace_rcl_publisher_init",
    "ros_trace_rcl_service_init",
    "ros_trace_rcl_subscription_init",
    "ros_trace_rcl_take",
    "ros_trace_rcl_timer_init",
    "ros_trace_rclcpp_buffer_to_ipb",
    "ros_trace_rclcpp_callback_register",
    "ros_trace_rclcpp_construct_ring_buffer",
    "ros_trace_rclcpp_executor_execute",
    "ros_trace_rclcpp_executor_get_next_ready",
    "ros_trace_rclcpp_executor_wait_for_work",
    "ros_trace_rclcpp_intra_publish",
    "ros_trace_rclcpp_ipb_to_subscription",
    "ros_trace_rclcpp_publish",
    "ros_trace_rclcpp_ring_buffer_clear",
    "ros_trace_rclcpp_ring_buffer_dequeue",
    "ros_trace_rclcpp_ring_buffer_enqueue",
    "ros_trace_rclcpp_service_callback_added",
    "ros_trace_rclcpp_subscription_callback_added",
    "ros_trace_rclcpp_subscription_init",
    "ros_trace_rclcpp_take",
    "ros_trace_rclcpp_timer_callback_added",
    "ros_trace_rclcpp_timer_link_node",
    "ros_trace_rmw_client_init",
    "ros_trace_rmw_publish",
    "ros_trace_rmw_publisher_init",
    "ros_trace_rmw_send_request",
    "ros_trace_rmw_send_response",
    "ros_trace_rmw_subscription_init",
    "ros_trace_rmw_take",
    "ros_trace_rmw_take_request",
    "ros_trace_rmw_take_response",
};

/// A distribution of ROS 2: its name, the first major and minor version of its tracetools, which
/// of the functions it has (bit: their place), and how many arguments rmw_publish has.
struct Distribution {
  std::string_view name;
  uint16_t major;
  uint16_t minor;
  uint64_t functions;
  uint8_t publish_arguments;
};
constexpr uint16_t kKnownBeforeMajor = 9;
constexpr std::array<Distribution, 5> kDistributions = {{
    {"humble", 4, 0, 0xcdf89d7ff3, 1},
    {"iron", 5, 0, 0xcdfffffff3, 1},
    {"jazzy", 8, 0, 0xcdfffffff3, 3},
    {"kilted", 8, 5, 0x3fffffffff3, 3},
    {"rolling", 8, 9, 0x3ffffffffff, 3},
}};

}  // namespace lagometer::probes

// Of each its name, its arguments with types, and without.
#define LAGOMETER_ROS2_FUNCTIONS(function) \
  function(callback_end, (const void* a0), (a0)) \
  function(callback_start, (const void* a0, bool a1), (a0, a1)) \
  function(message_link_partial_sync, (const void** a0, size_t a1, const void** a2, size_t a3), (a0, a1, a2, a3)) \
  function(message_link_periodic_async, (const void** a0, size_t a1, const void** a2, size_t a3), (a0, a1, a2, a3)) \
  function(rcl_client_init, (const void* a0, const void* a1, const void* a2, const char* a3), (a0, a1, a2, a3)) \
  function(rcl_init, (const void* a0), (a0)) \
  function(rcl_lifecycle_state_machine_init, (const void* a0, const void* a1), (a0, a1)) \
  function(rcl_lifecycle_transition, (const void* a0, const char* a1, const char* a2), (a0, a1, a2)) \
  function(rcl_node_init, (const void* a0, const void* a1, const char* a2, const char* a3), (a0, a1, a2, a3)) \
  function(rcl_publish, (const void* a0, const void* a1), (a0, a1)) \
  function(rcl_publisher_init, (const void* a0, const void* a1, const void* a2, const char* a3, size_t a4), (a0, a1, a2, a3, a4)) \
  function(rcl_service_init, (const void* a0, const void* a1, const void* a2, const char* a3), (a0, a1, a2, a3)) \
  function(rcl_subscription_init, (const void* a0, const void* a1, const void* a2, const char* a3, size_t a4), (a0, a1, a2, a3, a4)) \
  function(rcl_take, (const void* a0), (a0)) \
  function(rcl_timer_init, (const void* a0, int64_t a1), (a0, a1)) \
  function(rclcpp_buffer_to_ipb, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_callback_register, (const void* a0, const char* a1), (a0, a1)) \
  function(rclcpp_construct_ring_buffer, (const void* a0, uint64_t a1), (a0, a1)) \
  function(rclcpp_executor_execute, (const void* a0), (a0)) \
  function(rclcpp_executor_get_next_ready, (), ()) \
  function(rclcpp_executor_wait_for_work, (int64_t a0), (a0)) \
  function(rclcpp_intra_publish, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_ipb_to_subscription, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_publish, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_ring_buffer_clear, (const void* a0), (a0)) \
  function(rclcpp_ring_buffer_dequeue, (const void* a0, uint64_t a1, uint64_t a2), (a0, a1, a2)) \
  function(rclcpp_ring_buffer_enqueue, (const void* a0, uint64_t a1, uint64_t a2, bool a3), (a0, a1, a2, a3)) \
  function(rclcpp_service_callback_added, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_subscription_callback_added, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_subscription_init, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_take, (const void* a0), (a0)) \
  function(rclcpp_timer_callback_added, (const void* a0, const void* a1), (a0, a1)) \
  function(rclcpp_timer_link_node, (const void* a0, const void* a1), (a0, a1)) \
  function(rmw_client_init, (const void* a0, const uint8_t* a1), (a0, a1)) \
  function(rmw_publish, (const void* a0, const void* a1, int64_t a2), (a0, a1, a2)) \
  function(rmw_publisher_init, (const void* a0, const uint8_t* a1), (a0, a1)) \
  function(rmw_send_request, (const void* a0, const void* a1, int64_t a2), (a0, a1, a2)) \
  function(rmw_send_response, (const void* a0, const void* a1, const uint8_t* a2, int64_t a3, int64_t a4), (a0, a1, a2, a3, a4)) \
  function(rmw_subscription_init, (const void* a0, const uint8_t* a1), (a0, a1)) \
  function(rmw_take, (const void* a0, const void* a1, int64_t a2, bool a3), (a0, a1, a2, a3)) \
  function(rmw_take_request, (const void* a0, const void* a1, const uint8_t* a2, int64_t a3, bool a4), (a0, a1, a2, a3, a4)) \
  function(rmw_take_response, (const void* a0, const void* a1, int64_t a2, int64_t a3, bool a4), (a0, a1, a2, a3, a4))
// clang-format on
