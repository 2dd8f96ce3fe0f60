// SPDX-License-Identifier: Apache-2.0
#include "spinner.hpp"

#include <chrono>
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>

#include "binding.hpp"

namespace lagometer::ros2 {
namespace {

std::unique_ptr<rclcpp::Executor> make_executor(const Settings& settings,
                                                const std::shared_ptr<rclcpp::Context>& context) {
  rclcpp::ExecutorOptions options;
  options.context = context;
  switch (settings.executor) {
    case ExecutorKind::kStaticSingleThreaded:
      return std::make_unique<rclcpp::executors::StaticSingleThreadedExecutor>(options);
    case ExecutorKind::kMultiThreaded:
      return std::make_unique<rclcpp::executors::MultiThreadedExecutor>(options, settings.executor_threads);
    case ExecutorKind::kEvents: {
      using rclcpp::experimental::executors::EventsExecutor;
      using rclcpp::experimental::executors::SimpleEventsQueue;
      return std::make_unique<EventsExecutor>(std::make_unique<SimpleEventsQueue>(), false, options);
    }
    case ExecutorKind::kSingleThreaded:
      break;
  }
  return std::make_unique<rclcpp::executors::SingleThreadedExecutor>(options);
}

}  // namespace

Spinner::Spinner(const Settings& settings, const std::shared_ptr<rclcpp::Context>& context)
    : executor_(make_executor(settings, context)) {}

Spinner::~Spinner() {
  if (!thread_.joinable()) return;
  executor_->cancel();
  thread_.join();
}

void Spinner::add(const rclcpp::Node::SharedPtr& node) {
  executor_->add_node(node);
  if (thread_.joinable()) return;
  thread_ = std::thread([this] { spin(); });
  // If it is cancelled before it spins, it would spin forever.
  constexpr auto kPause = std::chrono::microseconds(100);
  while (!executor_->is_spinning() && !ended_) std::this_thread::sleep_for(kPause);
}

void Spinner::remove(const rclcpp::Node::SharedPtr& node) { executor_->remove_node(node); }

void Spinner::spin() noexcept {
  host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c("executor"));
  try {
    executor_->spin();
  } catch (const std::exception& error) {
    host->fail(host->self, to_c(std::string("ros2: the executor stopped: ") + error.what()));
  }
  ended_ = true;
  host->thread_end(host->self);
}

}  // namespace lagometer::ros2
