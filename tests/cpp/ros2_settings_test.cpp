// SPDX-License-Identifier: Apache-2.0
// What of the adapter for ROS 2 needs no ROS 2: its options and the quality of service in its terms.
#include "settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

#include "graph_name.hpp"

namespace {

using lagometer::Error;
using lagometer::graph_name;
using lagometer::ros2::check_intra_process;
using lagometer::ros2::check_service;
using lagometer::ros2::ExecutorKind;
using lagometer::ros2::link_variables;
using lagometer::ros2::Quality;
using lagometer::ros2::Settings;
using lagometer::ros2::transport_of;

lagometer_qos qos(uint64_t present) {
  lagometer_qos result{};
  result.size = sizeof result;
  result.abi_version = LAGOMETER_ABI_VERSION;
  result.present = present;
  return result;
}

TEST(Ros2Settings, ReadsEachOption) {
  const Settings read = Settings::from("default", R"({"rmw": "rmw_zenoh_cpp", "executor": "multi_threaded",
    "executor_threads": 3, "callback_groups": "reader", "timers": "node", "intra_process": false,
    "loans": true, "deadline_ms": 5, "lifespan_ms": 7, "liveliness": "manual_by_topic", "liveliness_lease_ms": 9})");
  EXPECT_EQ(read.rmw, "rmw_zenoh_cpp");
  EXPECT_EQ(read.executor, ExecutorKind::kMultiThreaded);
  EXPECT_EQ(read.executor_threads, 3U);
  EXPECT_TRUE(read.group_for_each_reader);
  EXPECT_FALSE(read.executor_timers);
  EXPECT_FALSE(read.intra_process);
  EXPECT_TRUE(read.loans);
  EXPECT_EQ(read.deadline_ns, 5'000'000);
  EXPECT_EQ(read.lifespan_ns, 7'000'000);
  EXPECT_EQ(read.liveliness_lease_ns, 9'000'000);
  EXPECT_TRUE(read.manual_liveliness);
}

TEST(Ros2Settings, AreThoseOfRos2WithoutOptions) {
  const Settings read = Settings::from("", "");
  EXPECT_EQ(read.rmw, "");
  EXPECT_EQ(read.executor_class(), "rclcpp::executors::SingleThreadedExecutor");
  EXPECT_FALSE(read.group_for_each_reader || read.intra_process || read.loans);
}

TEST(Ros2Settings, NamesEachExecutor) {
  for (const char* name : {"single_threaded", "static_single_threaded", "multi_threaded", "events"}) {
    const Settings read = Settings::from("default", std::string(R"({"executor": ")") + name + "\"}");
    std::string letters(name);
    std::erase(letters, '_');
    std::string made = read.executor_class();
    std::ranges::transform(made, made.begin(), [](unsigned char letter) { return std::tolower(letter); });
    EXPECT_TRUE(made.ends_with("::" + letters + "executor")) << made;
  }
}

class Refused : public testing::TestWithParam<const char*> {};
TEST_P(Refused, WithTheStatusInvalid) {
  try {
    Settings::from("default", GetParam());
    FAIL() << GetParam();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), LAGOMETER_INVALID);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Ros2Settings, Refused,
    testing::Values("[]", "{", R"({"unknown": 1})", R"({"rmw": 1})", R"({"rmw": ""})", R"({"rmw": "../evil"})",
                    R"({"executor": "fast"})", R"({"executor_threads": 2})",
                    R"({"executor": "multi_threaded", "executor_threads": 0})",
                    R"({"executor": "multi_threaded", "executor_threads": 2000})", R"({"callback_groups": true})",
                    R"({"participants": "node"})", R"({"intra_process": 1})", R"({"loans": "yes"})",
                    R"({"deadline_ms": 0})", R"({"deadline_ms": 2147483648})", R"({"lifespan_ms": "long"})",
                    R"({"liveliness_lease_ms": 1.5})", R"({"liveliness": "manual"})",
                    R"({"liveliness": "manual_by_topic"})", R"({"intra_process": true, "loans": true})"));

TEST(Ros2Settings, RefuseAnUnknownProfile) { EXPECT_THROW(Settings::from("fast", ""), Error); }

TEST(Ros2Quality, IsThatOfRos2WhereNothingIsAsked) {
  EXPECT_EQ(Quality(nullptr).code(), "rclcpp::QoS(10).reliable().durability_volatile()");
  const lagometer_qos nothing = qos(0);
  EXPECT_EQ(Quality(&nothing).code(), Quality(nullptr).code());
}

TEST(Ros2Quality, SaysEachPolicyInCode) {
  lagometer_qos wanted = qos(LAGOMETER_QOS_RELIABILITY | LAGOMETER_QOS_HISTORY | LAGOMETER_QOS_DURABILITY);
  wanted.reliability = LAGOMETER_BEST_EFFORT;
  wanted.history = LAGOMETER_KEEP_LAST;
  wanted.depth = 7;
  wanted.durability = LAGOMETER_TRANSIENT_LOCAL;
  EXPECT_EQ(Quality(&wanted).code(), "rclcpp::QoS(7).best_effort().transient_local()");
  wanted.history = LAGOMETER_KEEP_ALL;
  EXPECT_EQ(Quality(&wanted).code(), "rclcpp::QoS(rclcpp::KeepAll()).best_effort().transient_local()");
}

TEST(Ros2Quality, HasTheOptionsWhereTheEndpointAsksForNothing) {
  const Settings settings = Settings::from("default", R"({"deadline_ms": 5, "lifespan_ms": 7,
    "liveliness": "manual_by_topic", "liveliness_lease_ms": 9})");
  EXPECT_EQ(Quality(nullptr, settings).code(),
            "rclcpp::QoS(10).reliable().durability_volatile()"
            ".deadline(rclcpp::Duration::from_nanoseconds(5000000))"
            ".lifespan(rclcpp::Duration::from_nanoseconds(7000000))"
            ".liveliness(rclcpp::LivelinessPolicy::ManualByTopic)"
            ".liveliness_lease_duration(rclcpp::Duration::from_nanoseconds(9000000))");
  lagometer_qos wanted = qos(LAGOMETER_QOS_DEADLINE | LAGOMETER_QOS_LIFESPAN);
  wanted.deadline_ns = 1;
  wanted.lifespan_ns = 2;
  const Quality own(&wanted, settings);
  EXPECT_EQ(own.deadline_ns, 1);
  EXPECT_EQ(own.lifespan_ns, 2);
  EXPECT_TRUE(own.watched());
  EXPECT_FALSE(Quality(nullptr).watched());
}

TEST(Ros2Quality, RefusesWhatItDoesNotSet) {
  for (const uint64_t policy : {LAGOMETER_QOS_LIVELINESS, LAGOMETER_QOS_PARTITION}) {
    const lagometer_qos wanted = qos(policy);
    EXPECT_THROW(Quality{&wanted}, Error);
  }
  for (const uint64_t policy : {LAGOMETER_QOS_DEADLINE, LAGOMETER_QOS_LIFESPAN}) {
    const lagometer_qos of_no_time = qos(policy);
    EXPECT_THROW(Quality{&of_no_time}, Error);
  }
  const lagometer_qos no_depth = qos(LAGOMETER_QOS_HISTORY);
  EXPECT_THROW(Quality{&no_depth}, Error);
}

TEST(Ros2IntraProcess, TakesWhatRclcppCanHandOver) {
  Quality quality(nullptr);
  EXPECT_NO_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_LISTENER, "/t"));
  EXPECT_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_WAITSET, "/t"), Error);
  EXPECT_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_POLL, "/t"), Error);
  quality.keep_all = true;
  EXPECT_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_LISTENER, "/t"), Error);
  quality = Quality(nullptr);
  quality.deadline_ns = 1;
  EXPECT_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_LISTENER, "/t"), Error);
  quality = Quality(nullptr);
  quality.transient_local = true;
  EXPECT_THROW(check_intra_process(quality, LAGOMETER_DISPATCH_LISTENER, "/t"), Error);
}

TEST(Ros2Services, HaveWhatRclcppHasOfThem) {
  const Settings usual;
  const Quality quality(nullptr);
  EXPECT_NO_THROW(check_service(usual, quality, quality, "/s"));
  Quality other(nullptr);
  other.depth = 1;
  EXPECT_THROW(check_service(usual, quality, other, "/s"), Error);
  other = Quality(nullptr);
  other.lifespan_ns = 1;
  EXPECT_THROW(check_service(usual, other, other, "/s"), Error);
  for (const char* options : {R"({"intra_process": true})", R"({"loans": true})"}) {
    EXPECT_THROW(check_service(Settings::from("default", options), quality, quality, "/s"), Error);
  }
}

TEST(Ros2Quality, SaysTheOptionsThatItFollows) {
  EXPECT_EQ(Quality(nullptr).describe().size(), 1U);
  const auto settings = Settings::from(
      "default", R"({"deadline_ms":20,"lifespan_ms":30,"liveliness":"manual_by_topic","liveliness_lease_ms":40})");
  const auto said = Quality(nullptr, settings).describe();
  EXPECT_EQ(said["deadline_ns"]["value"], 20'000'000);
  EXPECT_EQ(said["lifespan_ns"]["value"], 30'000'000);
  EXPECT_EQ(said["liveliness"]["value"], "manual_by_topic");
  EXPECT_EQ(said["liveliness_lease_ns"]["value"], 40'000'000);
}

TEST(Ros2Link, IsTheInterfaceOfCycloneDdsAndNotTheHostAlone) {
  unsetenv("CYCLONEDDS_URI");
  EXPECT_TRUE(link_variables("").empty());
  EXPECT_TRUE(link_variables(R"({"peers": 2})").empty());
  const auto found = link_variables(R"({"address": "10.0.0.7"})");
  EXPECT_EQ(found.at("ROS_AUTOMATIC_DISCOVERY_RANGE"), "SUBNET");
  EXPECT_NE(found.at("CYCLONEDDS_URI").find("<NetworkInterface address=\"10.0.0.7\"/>"), std::string::npos);
  EXPECT_THROW(link_variables("[]"), Error);
  EXPECT_THROW(link_variables(R"({"address": 7})"), Error);
}

TEST(Ros2Link, LeavesAConfigurationOfTheShellAsItIs) {
  setenv("CYCLONEDDS_URI", "file:///own.xml", 1);
  EXPECT_EQ(link_variables(R"({"address": "10.0.0.7"})").count("CYCLONEDDS_URI"), 0U);
  unsetenv("CYCLONEDDS_URI");
}

TEST(Ros2Transport, IsClaimedWhereItIsKnown) {
  EXPECT_TRUE(transport_of("rmw_other_cpp").is_null());
  EXPECT_EQ(transport_of("rmw_cyclonedds_cpp")["between_processes"], nlohmann::json::array({"udp"}));
}

TEST(GraphName, KeepsWhatRosAllowsAlone) {
  EXPECT_EQ(graph_name("lagometer/t0", '/'), "lagometer/t0");
  EXPECT_EQ(graph_name("a-b/c", '_'), "a_x2Db_x2Fc");
}

}  // namespace
