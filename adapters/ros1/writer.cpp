// SPDX-License-Identifier: Apache-2.0
#include "writer.hpp"

#include <ros/publisher.h>

#include <boost/make_shared.hpp>
#include <vector>

#include "messages.hpp"

namespace lagometer::ros1 {
namespace {

/// The messages of one publisher. What a subscriber of the same process holds by pointer may not be written to; such a
/// publisher comes to have as many messages as are held at once, any other has one.
template <typename Message>
class Pool {
 public:
  using Pointer = boost::shared_ptr<Message>;

  /// A message that nobody else holds, until the next call.
  const Pointer& next() {
    for (size_t tried = 0; tried < messages_.size(); ++tried) {
      current_ = current_ + 1 < messages_.size() ? current_ + 1 : 0;
      if (messages_[current_].use_count() == 1) return messages_[current_];
    }
    messages_.push_back(boost::make_shared<Message>());
    current_ = messages_.size() - 1;
    return messages_[current_];
  }
  [[nodiscard]] const Pointer& current() const { return messages_[current_]; }

 private:
  std::vector<Pointer> messages_;
  size_t current_ = 0;
};

template <typename Message>
class TypedOutlet final : public Writer::Outlet {
 public:
  explicit TypedOutlet(const Endpoint& endpoint)
      : by_pointer_(endpoint.settings.by_pointer),
        publisher_(endpoint.ros_node.advertise<Message>(endpoint.topic, endpoint.quality.queue_size)) {
    if (!publisher_) throw Error(LAGOMETER_FAILED, "ros1: roscpp did not advertise topic " + endpoint.topic);
  }

  lagometer_region borrow(uint64_t bytes) override { return resized(*pool_.next(), bytes); }
  void publish() override {
    if (by_pointer_)
      publisher_.publish(pool_.current());
    else
      publisher_.publish(*pool_.current());
  }
  [[nodiscard]] uint32_t subscribers() const override { return publisher_.getNumSubscribers(); }

 private:
  bool by_pointer_;
  ros::Publisher publisher_;
  Pool<Message> pool_;
};

std::unique_ptr<Writer::Outlet> make_outlet(const Endpoint& endpoint) {
  if (!endpoint.type.fixed) return std::make_unique<TypedOutlet<Bytes>>(endpoint);
  switch (endpoint.type.max_bytes) {
    case 64:
      return std::make_unique<TypedOutlet<Fixed<64>>>(endpoint);
    case 1024:
      return std::make_unique<TypedOutlet<Fixed<1024>>>(endpoint);
    case 65536:
      return std::make_unique<TypedOutlet<Fixed<65536>>>(endpoint);
    default:
      return std::make_unique<TypedOutlet<Fixed<1048576>>>(endpoint);
  }
}

}  // namespace

Writer::Writer(Node& node, const lagometer_endpoint_config& config) : endpoint_(node, config) {}

void Writer::enable() { outlet_ = make_outlet(endpoint_); }

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) {
  const Type& type = endpoint_.type;
  if (bytes > type.max_bytes || (type.fixed && bytes != type.max_bytes)) {
    throw Error(LAGOMETER_INVALID, "ros1: a message of " + std::to_string(bytes) + " bytes does not fit the type of " +
                                       std::to_string(type.max_bytes) + " bytes on topic " + endpoint_.topic);
  }
  message.origin = LAGOMETER_ORIGIN_NATIVE;
  message.region_count = 1;
  message.regions[0] = outlet_->borrow(bytes);
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(lagometer_message&) {
  outlet_->publish();
  return LAGOMETER_OK;
}

void Writer::matched(lagometer_matched& out) const {
  out.count = outlet_ ? outlet_->subscribers() : 0;
  out.exact = 0;
}

nlohmann::json Writer::describe() const {
  return {{"settings", {{"queue_size", setting(endpoint_.quality.queue_size, nullptr)}}},
          {"paste", nlohmann::json::array()}};
}

}  // namespace lagometer::ros1
