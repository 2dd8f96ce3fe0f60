// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

#include "graph_name.hpp"
#include "process.hpp"
#include "reader.hpp"

namespace lagometer::ros1 {

Context::Context(const lagometer_context_config& config)
    : settings_(Settings::from(view(config.profile), view(config.options))), ros_node_(nullptr) {
  if (config.domain != 0)
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: ROS 1 has no domains; a second master would be another network");
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "ros1: ROS 1 has no security");
  std::string address = "127.0.0.1";
  if (!view(config.network).empty()) address = nlohmann::json::parse(view(config.network)).value("address", address);
  ros_node_ = &Process::node(view(config.name), view(config.runtime_directory), address);
}

Node::~Node() {
  if (!spinner_) return;
  queue_->disable();  // otherwise the spinner would only notice its end after its wait of 100 ms
  spinner_->stop();
}

std::shared_ptr<Queue> Node::spun_queue() {
  if (!queue_) {
    queue_ = std::make_shared<Queue>();
    spinner_ = std::make_unique<ros::AsyncSpinner>(1, queue_.get());
    spinner_->start();
  }
  return queue_;
}

Type::Type(Context&, const lagometer_type_config& config)
    : fixed(view(config.name) == "fixed"), max_bytes(config.max_bytes) {
  const std::string name(view(config.name));
  if (!fixed && name != "bytes")
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: no type '" + name + "'; valid: bytes, fixed");
  if (config.flags != 0) throw Error(LAGOMETER_UNSUPPORTED, "ros1: ROS 1 has no keyed types");
  if (fixed && max_bytes != 64 && max_bytes != 1024 && max_bytes != 65536 && max_bytes != 1048576)
    throw Error(LAGOMETER_INVALID, "ros1: the type fixed has 64, 1024, 65536 or 1048576 bytes");
  // roscpp drops the connection if a message is longer; 12 bytes of it are the layout of a UInt8MultiArray.
  constexpr uint64_t kPayloadBytesMax = 1'000'000'000 - 12;
  if (max_bytes < LAGOMETER_PAYLOAD_BYTES_MIN || max_bytes > kPayloadBytesMax)
    throw Error(LAGOMETER_INVALID, "ros1: a payload has 4 to " + std::to_string(kPayloadBytesMax) + " bytes");
}

Endpoint::Endpoint(Node& node, const lagometer_endpoint_config& config)
    : ros_node(node.context.ros_node()),
      settings(node.context.settings()),
      type(*reinterpret_cast<const Type*>(config.type)),
      topic("/" + graph_name(view(config.topic), '/')),
      quality(config.qos),
      udp(settings.uses_udp(quality.reliable)) {
  if (config.flags != 0) throw Error(LAGOMETER_INVALID, "ros1: unknown flag for topic " + topic);
  if (udp && type.max_bytes > settings.udp_payload_bytes_max()) {
    throw Error(LAGOMETER_INVALID, "ros1: UDPROS cuts a message into at most 65535 datagrams: payloads of up to " +
                                       std::to_string(settings.udp_payload_bytes_max()) +
                                       " bytes with this max_datagram_size");
  }
}

nlohmann::json describe_service(const Endpoint& endpoint) {
  return {{"settings", {{"queue_size", setting(endpoint.quality.queue_size, nullptr)}}},
          {"paste", nlohmann::json::array()},
          {"transport", {{"within_process", {"tcp"}}, {"between_processes", {"tcp"}}}}};
}

void Waitset::attach(Reader& reader) const { reader.attach(queue_); }

}  // namespace lagometer::ros1
