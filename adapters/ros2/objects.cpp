// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

#include <rcl/context.h>
#include <rmw/rmw.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "dds_security.hpp"
#include "graph_name.hpp"
#include "keystore.hpp"
#include "reader.hpp"
#include "ros2_messages.hpp"

namespace lagometer::ros2 {
namespace {

/// The rmw library is loaded once per process, and this variable selects it.
void choose_rmw(const Settings& settings, std::string_view directory) {
  if (!settings.rmw.empty()) setenv("RMW_IMPLEMENTATION", settings.rmw.c_str(), 1);
  // The log files; not in the user's home.
  if (!directory.empty()) setenv("ROS_LOG_DIR", (std::string(directory) + "/ros_log").c_str(), 1);
}

void check_rmw(const Settings& settings) {
  const std::string loaded = rmw_get_implementation_identifier();
  if (!settings.rmw.empty() && loaded != settings.rmw) {
    throw Error(LAGOMETER_INVALID, "ros2: this process uses " + loaded + " already: one process, one rmw, not " +
                                       settings.rmw + " as well");
  }
}

/// The file of the rmw library that this process has mapped; null if there is none.
nlohmann::json mapped_library(const std::string& rmw) {
  const std::string name = "/lib" + rmw + ".so";
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find('/');
    if (path != std::string::npos && line.find(name, path) != std::string::npos) return line.substr(path);
  }
  return nullptr;
}

std::shared_ptr<rclcpp::Context> make_context(size_t domain, const std::vector<const char*>& arguments) {
  rclcpp::InitOptions options;
  options.set_domain_id(domain);
  // Each initialisation opens its own log file. A ROS 2 process does that once.
  static std::atomic<bool> logs{false};
  options.auto_initialize_logging(!logs.exchange(true));
  // lagometer handles signals: rclcpp::init would install its own handlers, a context does not.
  auto context = std::make_shared<rclcpp::Context>();
  context->init(static_cast<int>(arguments.size()), arguments.data(), options);
  return context;
}

/// Secured contexts of this process have a number each.
std::filesystem::path next_keystore(std::string_view runtime_directory) {
  static std::atomic<unsigned> made{0};
  const std::string name = "keystore-" + std::to_string(getpid()) + "-" + std::to_string(made++);
  return std::filesystem::path(runtime_directory) / "sros2" / name;
}

/// Throws Error(LAGOMETER_UNSUPPORTED).
void check_security(const Settings& settings) {
  const std::string rmw = rmw_get_implementation_identifier();
  if (rmw.starts_with("rmw_zenoh"))
    throw Error(LAGOMETER_UNSUPPORTED, "ros2: " + rmw + " is not secured by the files of DDS Security");
  if (settings.intra_process)
    throw Error(LAGOMETER_UNSUPPORTED, "ros2: intra_process hands messages over, and nothing is secured there");
}

/// A context that finds its keystore and starts with it or not at all.
std::shared_ptr<rclcpp::Context> make_secured(size_t domain, const dds_security::Files& files,
                                              std::string_view runtime_directory) {
  const Keystore keystore(files, next_keystore(runtime_directory));
  const Variables while_it_starts(keystore.variables());
  return make_context(domain, Keystore::arguments());
}

/// How the rmw protects a context, by the folder that it has taken its files from: "none", "sign" or "encrypt".
std::string security_of(rclcpp::Context& context) {
  const rmw_context_t* const rmw = rcl_context_get_rmw_context(context.get_rcl_context().get());
  const rmw_security_options_t& security = rmw->options.security_options;
  if (security.security_root_path == nullptr) return "none";
  return dds_security::protection_in(std::string(security.security_root_path) + "/governance.p7s");
}

}  // namespace

namespace {

/// Domains in which this process uses intra-process communication.
struct Domains {
  std::mutex mutex;
  std::set<size_t> in_use;
};
Domains& domains() {
  static Domains all;
  return all;
}

}  // namespace

OnlyOne::OnlyOne(size_t domain) : domain_(domain) {
  const std::scoped_lock lock(domains().mutex);
  if (!domains().in_use.insert(domain).second) {
    throw Error(
        LAGOMETER_INVALID,
        "ros2: intra_process works within one context: with participants per-node nothing would be handed over");
  }
}

OnlyOne::~OnlyOne() {
  const std::scoped_lock lock(domains().mutex);
  domains().in_use.erase(domain_);
}

Context::Context(const lagometer_context_config& config)
    : settings_(Settings::from(view(config.profile), view(config.options))) {
  const std::optional<dds_security::Files> security = dds_security::parse(config.security, "ros2");
  choose_rmw(settings_, view(config.runtime_directory));
  for (const auto& [name, value] : link_variables(view(config.network))) setenv(name.c_str(), value.c_str(), 1);
  if (settings_.intra_process) hands_over_.emplace(config.domain);
  if (security) check_security(settings_);
  ros_context_ = security ? make_secured(config.domain, *security, view(config.runtime_directory))
                          : make_context(config.domain, {});
  check_rmw(settings_);
}

Context::~Context() {
  spinner_.reset();
  ros_context_->shutdown("lagometer");
}

void Context::share_executor() {
  if (has_nodes_) throw Error(LAGOMETER_INVALID, "ros2: an executor is shared before there is a node");
  shares_executor_ = true;
}

std::shared_ptr<Spinner> Context::spinner_for_node() {
  if (!shares_executor_) return std::make_shared<Spinner>(settings_, ros_context_);
  if (!spinner_) spinner_ = std::make_shared<Spinner>(settings_, ros_context_);
  return spinner_;
}

nlohmann::json Context::describe() const {
  const std::string rmw = rmw_get_implementation_identifier();
  const Settings usual;
  nlohmann::json settings{{"RMW_IMPLEMENTATION", setting(rmw, "rmw_fastrtps_cpp")}};
  settings["rmw chosen by"] = setting(settings_.rmw.empty() ? "ROS 2 or the environment" : "the option rmw", nullptr);
  settings["executor"] = setting(settings_.executor_class(), usual.executor_class());
  if (settings_.executor_threads != 0)
    settings["number_of_threads"] = setting(settings_.executor_threads, "as many as CPUs, at least 2");
  settings["executors"] = setting(shares_executor_ ? "one for all nodes" : "one for each node", nullptr);
  settings["callback_groups"] = setting(settings_.group_for_each_reader ? "reader" : "node", "node");
  settings["timers"] = setting(settings_.executor_timers ? "executor" : "node", "executor");
  settings["use_intra_process_comms"] = setting(settings_.intra_process, false);
  for (const char* name : {"ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS", "CYCLONEDDS_URI",
                           "FASTRTPS_DEFAULT_PROFILES_FILE", "ZENOH_SESSION_CONFIG_URI"}) {
    if (const auto value = variable(name)) settings[name] = setting(*value, "");
  }
  if (const std::string kind = security_of(*ros_context_); kind != "none") settings["security"] = setting(kind, "none");
  if (const auto chosen = builtin_transports(); chosen && rmw.starts_with("rmw_fastrtps"))
    settings["FASTDDS_BUILTIN_TRANSPORTS"] = setting(*chosen, "DEFAULT");
  nlohmann::json paste = nlohmann::json::array();
  paste.push_back({{"file", "the shell that starts the nodes"}, {"text", "export RMW_IMPLEMENTATION=" + rmw}});
  nlohmann::json result{{"settings", settings}, {"observed", {{"rmw_library", mapped_library(rmw)}}}, {"paste", paste}};
  const nlohmann::json transport = transport_of(rmw);
  if (!transport.is_null()) result["transport"] = transport;
  return result;
}

Node::Node(Context& given, std::string_view name) : context(given) {
  given.node_made();
  rclcpp::NodeOptions options;
  options.context(given.ros_context()).use_intra_process_comms(given.settings().intra_process);
  // A name must not begin with a digit.
  ros_node_ = std::make_shared<rclcpp::Node>("lagometer_" + graph_name(name, '_'), options);
}

Node::~Node() {
  if (spinner_) spinner_->remove(ros_node_);
  spinner_.reset();
  ros_node_.reset();
}

rclcpp::CallbackGroup::SharedPtr Node::group_for(uint32_t dispatch) {
  constexpr auto kKind = rclcpp::CallbackGroupType::MutuallyExclusive;
  if (dispatch != LAGOMETER_DISPATCH_LISTENER) return ros_node_->create_callback_group(kKind, false);
  if (!spinner_) {
    spinner_ = context.spinner_for_node();
    spinner_->add(ros_node_);
  }
  return context.settings().group_for_each_reader ? ros_node_->create_callback_group(kKind, true) : nullptr;
}

Type::Type(Context&, const lagometer_type_config& config) : name(view(config.name)), max_bytes(config.max_bytes) {
  if (config.flags != 0) throw Error(LAGOMETER_UNSUPPORTED, "ros2: topics of ROS 2 have no keys");
  if (max_bytes < LAGOMETER_PAYLOAD_BYTES_MIN || max_bytes > INT32_MAX)
    throw Error(LAGOMETER_INVALID, "ros2: a payload has 4 to " + std::to_string(INT32_MAX) + " bytes");
}

void Type::check(uint64_t bytes) const {
  const auto message = message_of(name);
  const bool fits = bytes <= max_bytes && (name != "fixed" || bytes == max_bytes);
  if (!fits || (message && !has_size(*message, bytes))) {
    throw Error(LAGOMETER_INVALID, "ros2: a message of " + std::to_string(bytes) + " bytes does not fit the type " +
                                       name + " of " + std::to_string(max_bytes) + " bytes");
  }
}

Endpoint::Endpoint(Node& given, const lagometer_endpoint_config& config)
    : node(given),
      settings(given.context.settings()),
      type(*reinterpret_cast<const Type*>(config.type)),
      topic("/" + graph_name(view(config.topic), '/')),
      quality(config.qos, settings) {}

rclcpp::QoS Endpoint::qos() const {
  rclcpp::QoS result = quality.keep_all ? rclcpp::QoS(rclcpp::KeepAll()) : rclcpp::QoS(rclcpp::KeepLast(quality.depth));
  quality.reliable ? result.reliable() : result.best_effort();
  quality.transient_local ? result.transient_local() : result.durability_volatile();
  const auto duration = [](int64_t duration_ns) { return rclcpp::Duration::from_nanoseconds(duration_ns); };
  if (quality.deadline_ns != 0) result.deadline(duration(quality.deadline_ns));
  if (quality.lifespan_ns != 0) result.lifespan(duration(quality.lifespan_ns));
  if (quality.manual_liveliness) result.liveliness(rclcpp::LivelinessPolicy::ManualByTopic);
  if (quality.liveliness_lease_ns != 0) result.liveliness_lease_duration(duration(quality.liveliness_lease_ns));
  return result;
}

Waitset::Waitset(Context& context)
    : wake_(std::make_shared<rclcpp::GuardCondition>(context.ros_context())),
      set_({}, {wake_}, {}, {}, {}, {}, context.ros_context()) {}

void Waitset::attach(Reader& reader) { reader.attach(*this); }

void Waitset::add(const rclcpp::SubscriptionBase::SharedPtr& subscription) {
  rclcpp::SubscriptionWaitSetMask mask;
  mask.include_events = false;  // nobody takes them here, so the first one would end every wait
  set_.add_subscription(subscription, mask);
}

lagometer_status Waitset::wait(int64_t until_ns) {
  constexpr int64_t kLongest_ns = int64_t{1} << 40;  // the wait is relative; one of 18 minutes is simply restarted
  for (;;) {
    const int64_t left_ns = std::clamp<int64_t>(until_ns - now_ns(), 0, kLongest_ns);
    const auto result = set_.wait(std::chrono::nanoseconds(left_ns));
    if (result.kind() == rclcpp::WaitResultKind::Ready) return LAGOMETER_OK;
    if (now_ns() >= until_ns) return LAGOMETER_TIMEOUT;
  }
}

}  // namespace lagometer::ros2
