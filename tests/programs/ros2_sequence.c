// SPDX-License-Identifier: Apache-2.0
// What a node of ROS 2 tells its tracer while it publishes messages and takes them again, over Cyclone DDS or without
// any middleware. It is compiled with -DPUBLISH_ARGUMENTS=1 or 3, as its distribution's rmw_publish has them, -DASKS
// where that distribution has `enabled` and `do` forms, -DOVER_DDS for Cyclone DDS, and linked with a library in ROS
// 2's place that keeps what it was told.
//   ros2_sequence COUNT [fork]   prints what the library was told at last, in one line; `fork`: a child does so, too
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef OVER_DDS
#include <dds/dds.h>

#include "number.h"
#endif

void ros_trace_rcl_node_init(const void* node, const void* rmw, const char* name, const char* name_space);
void ros_trace_rcl_publisher_init(const void* publisher, const void* node, const void* rmw, const char* topic,
                                  size_t depth);
void ros_trace_rcl_subscription_init(const void* subscription, const void* node, const void* rmw, const char* topic,
                                     size_t depth);
void ros_trace_rclcpp_publish(const void* publisher, const void* message);
void ros_trace_rcl_publish(const void* publisher, const void* message);
#if PUBLISH_ARGUMENTS == 1
void ros_trace_rmw_publish(const void* message);
#else
void ros_trace_rmw_publish(const void* publisher, const void* message, int64_t source_time);
#endif
void ros_trace_rclcpp_executor_wait_for_work(int64_t timeout);
void ros_trace_rclcpp_executor_get_next_ready(void);
void ros_trace_rclcpp_executor_execute(const void* handle);
void ros_trace_rmw_take(const void* subscription, const void* message, int64_t source_time, bool taken);
void ros_trace_rcl_take(const void* message);
void ros_trace_rclcpp_take(const void* message);
void ros_trace_callback_start(const void* callback, bool within_process);
void ros_trace_callback_end(const void* callback);
void ros_trace_rclcpp_callback_register(const void* callback, const char* symbol);
#ifdef ASKS
bool ros_trace_enabled_rclcpp_callback_register(void);
bool ros_trace_enabled_rclcpp_take(void);
void ros_trace_do_rclcpp_take(const void* message);
#endif
extern uint64_t stub_rmw_publish_arguments[], stub_rmw_take_arguments[];
extern int stub_rmw_publish_calls, stub_rclcpp_take_calls, stub_callback_end_calls, stub_rclcpp_callback_register_calls;

static const char node, publisher, subscription, callback;  // their addresses are handles

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#ifdef OVER_DDS
static dds_entity_t writer, reader, waitset;

static void begin(void) {
  const dds_entity_t participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  const dds_entity_t topic = dds_create_topic(participant, &description, "rt/numbers", NULL, NULL);
  writer = dds_create_writer(participant, topic, NULL, NULL);
  reader = dds_create_reader(participant, topic, NULL, NULL);
  waitset = dds_create_waitset(participant);
  dds_set_status_mask(reader, DDS_DATA_AVAILABLE_STATUS);
  dds_waitset_attach(waitset, reader, 0);
}
static void write_message(uint32_t value, int64_t source_time) {
  const Number number = {value};
  dds_write_ts(writer, &number, source_time);
}
static void wait_for_message(void) { dds_waitset_wait(waitset, NULL, 0, DDS_SECS(10)); }
static int64_t take_message(Number* number) {
  dds_sample_info_t info;
  void* place = number;
  return dds_take(reader, &place, &info, 1, 1) == 1 ? info.source_timestamp : 0;
}
#else
typedef uint32_t Number;
static int64_t last_time;
static void begin(void) {}
static void write_message(uint32_t value, int64_t source_time) {
  (void)value;
  last_time = source_time;
}
static void wait_for_message(void) {}
static int64_t take_message(Number* number) {
  *number = 0;
  return last_time;
}
#endif

static void publish(uint32_t value) {
  ros_trace_rclcpp_publish(NULL, &value);
  ros_trace_rcl_publish(&publisher, &value);
  const int64_t source_time = now_ns();
#if PUBLISH_ARGUMENTS == 1
  ros_trace_rmw_publish(&value);
#else
  ros_trace_rmw_publish(&publisher, &value, source_time);
#endif
  write_message(value, source_time);
}

static void spin_once(void) {
  ros_trace_rclcpp_executor_wait_for_work(-1);
  wait_for_message();
  ros_trace_rclcpp_executor_get_next_ready();
  ros_trace_rclcpp_executor_execute(&subscription);
  Number number;
  const int64_t source_time = take_message(&number);
  ros_trace_rmw_take(&subscription, &number, source_time, source_time != 0);
  ros_trace_rcl_take(&number);
#ifdef ASKS
  if (ros_trace_enabled_rclcpp_take()) ros_trace_do_rclcpp_take(&number);
#else
  ros_trace_rclcpp_take(&number);
#endif
  if (source_time == 0) return;
  ros_trace_callback_start(&callback, false);
  ros_trace_callback_end(&callback);
}

int main(int count, char** words) {
  const int messages = count > 1 ? atoi(words[1]) : 0;
  ros_trace_rcl_node_init(&node, NULL, "numbers", "/");
  ros_trace_rcl_publisher_init(&node, &node, &publisher, "/numbers", 10);
  ros_trace_rcl_subscription_init(&node, &node, &subscription, "/numbers", 10);
#ifdef ASKS
  // What nobody stamps is as it was: a yes would cost a node's start-up what it did not ask for.
  if (ros_trace_enabled_rclcpp_callback_register() != (getenv("STUB_ENABLED") != NULL)) return 1;
#endif
  ros_trace_rmw_take(&subscription, NULL, 0, false);  // nothing was taken
  begin();
  const pid_t child = count > 2 ? fork() : 1;
  for (int at = 0; at < messages; ++at) {
    publish((uint32_t)at);
    spin_once();
  }
  if (child == 0) return 0;
  if (count > 2) waitpid(child, NULL, 0);
  printf("%d %d %d %d", stub_rmw_publish_calls, stub_rclcpp_take_calls, stub_callback_end_calls,
         stub_rmw_take_arguments[2] != 0);
#if PUBLISH_ARGUMENTS == 3
  printf(" %d", stub_rmw_publish_arguments[0] == (uint64_t)(uintptr_t)&publisher);
#endif
  printf("\n");
  return 0;
}
