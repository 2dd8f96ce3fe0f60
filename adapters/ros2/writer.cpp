// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "service_ends.hpp"

namespace lagometer::ros2 {
namespace {

/// Anything that is sent by a publisher.
template <typename Message>
class TopicOutlet : public Writer::Outlet {
 public:
  void matched(lagometer_matched& out) const override {
    out.count = static_cast<uint32_t>(publisher_->get_subscription_count());
    // Intra-process subscriptions bypass the middleware; without intra-process communication there are none.
    out.count = std::max(out.count, static_cast<uint32_t>(publisher_->get_intra_process_subscription_count()));
    out.exact = 0;
  }
  void counters(lagometer_counters& out) const override {
    missed_.count<rclcpp::QOSDeadlineOfferedInfo>(publisher_->get_event_handlers(),
                                                  RCL_PUBLISHER_OFFERED_DEADLINE_MISSED, out);
  }

 protected:
  TopicOutlet(const Endpoint& endpoint, Missed& missed) : missed_(missed) {
    rclcpp::PublisherOptions options;
    missed.watch(endpoint.quality, options);
    publisher_ = endpoint.node.ros_node().create_publisher<Message>(endpoint.topic, endpoint.qos(), options);
  }
  typename rclcpp::Publisher<Message>::SharedPtr publisher_;

 private:
  const Missed& missed_;
};

/// publish(const Message&) of one message that is kept, as in a node with a member `message_`.
template <typename Message>
class ReferenceOutlet final : public TopicOutlet<Message> {
 public:
  ReferenceOutlet(const Endpoint& endpoint, Missed& missed) : TopicOutlet<Message>(endpoint, missed) {}
  Regions borrow(uint64_t bytes) override {
    prepare(message_, bytes);
    return shown(message_);
  }
  void publish() override { this->publisher_->publish(message_); }
  void discard() override {}

 private:
  Message message_;
};

/// publish(std::unique_ptr<Message>): within the process the receiver gets this same object.
template <typename Message>
class UniqueOutlet final : public TopicOutlet<Message> {
 public:
  UniqueOutlet(const Endpoint& endpoint, Missed& missed) : TopicOutlet<Message>(endpoint, missed) {}
  Regions borrow(uint64_t bytes) override {
    message_ = std::make_unique<Message>();
    prepare(*message_, bytes);
    return shown(*message_);
  }
  void publish() override { this->publisher_->publish(std::move(message_)); }
  void discard() override { message_.reset(); }

 private:
  std::unique_ptr<Message> message_;
};

/// borrow_loaned_message() and its publish(): the middleware's own memory.
template <typename Message>
class LoanOutlet final : public TopicOutlet<Message> {
 public:
  LoanOutlet(const Endpoint& endpoint, Missed& missed) : TopicOutlet<Message>(endpoint, missed) {
    // rclcpp would give a normal message instead, and only log it.
    if (!this->publisher_->can_loan_messages()) {
      throw Error(LAGOMETER_UNSUPPORTED, std::string("ros2: this rmw (") + rmw_get_implementation_identifier() +
                                             ") lends no memory for messages of topic " + endpoint.topic +
                                             ": it takes a type of fixed size, and an rmw with shared memory");
    }
  }
  Regions borrow(uint64_t bytes) override {
    message_.emplace(this->publisher_->borrow_loaned_message());
    prepare(message_->get(), bytes);
    return shown(message_->get());
  }
  void publish() override {
    this->publisher_->publish(std::move(*message_));
    message_.reset();
  }
  void discard() override { message_.reset(); }

 private:
  std::optional<rclcpp::LoanedMessage<Message>> message_;
};

std::unique_ptr<Writer::Outlet> make_outlet(const Endpoint& endpoint, Missed& missed) {
  return with_message_type(endpoint.type.name, endpoint.type.max_bytes, [&](auto example) {
    using Message = decltype(example);
    std::unique_ptr<Writer::Outlet> outlet;
    if (endpoint.settings.loans) {
      outlet = std::make_unique<LoanOutlet<Message>>(endpoint, missed);
    } else if (endpoint.settings.intra_process) {
      outlet = std::make_unique<UniqueOutlet<Message>>(endpoint, missed);
    } else {
      outlet = std::make_unique<ReferenceOutlet<Message>>(endpoint, missed);
    }
    return outlet;
  });
}

}  // namespace

void Writer::Outlet::answer(const rmw_request_id_t&) {
  throw Error(LAGOMETER_INVALID, "ros2: only a server answers requests");
}

Writer::Writer(Node& node, const lagometer_endpoint_config& config) : Writer(node, config, nullptr) {}

Writer::Writer(Node& node, const lagometer_endpoint_config& config, std::shared_ptr<ServiceEnd> service)
    : endpoint_(node, config), service_(std::move(service)) {
  if (endpoint_.settings.intra_process)
    check_intra_process(endpoint_.quality, LAGOMETER_DISPATCH_LISTENER, endpoint_.topic);
}

void Writer::enable() { outlet_ = service_ ? service_->outlet() : make_outlet(endpoint_, missed_); }

void Writer::answer(const lagometer_sample& request) {
  auto& arrived = *static_cast<Arrived*>(request.adapter_data);
  if (!arrived.request) throw Error(LAGOMETER_INVALID, "ros2: a request of " + endpoint_.topic + " is answered twice");
  outlet_->answer(*std::exchange(arrived.request, std::nullopt));
}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  endpoint_.type.check(bytes);
  const Regions regions = outlet_->borrow(bytes);
  message.origin = endpoint_.settings.loans ? LAGOMETER_ORIGIN_LOANED : LAGOMETER_ORIGIN_NATIVE;
  message.region_count = regions.count;
  std::copy_n(regions.region, regions.count, message.regions);
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(lagometer_message&) {
  outlet_->publish();
  return LAGOMETER_OK;
}

void Writer::discard(lagometer_message&) { outlet_->discard(); }

void Writer::matched(lagometer_matched& out) const {
  out.count = 0;
  out.exact = 0;
  if (outlet_) outlet_->matched(out);
}

void Writer::counters(lagometer_counters& out) const {
  out.present = 0;
  if (outlet_) outlet_->counters(out);
}

nlohmann::json Writer::describe() const {
  nlohmann::json paste = nlohmann::json::array();
  paste.push_back({{"file", "where the node publishes"}, {"text", endpoint_.quality.code()}});
  nlohmann::json settings = endpoint_.quality.describe();
  if (endpoint_.settings.loans) settings["loans"] = setting(true, false);
  return {{"settings", settings}, {"paste", paste}};
}

}  // namespace lagometer::ros2
