// SPDX-License-Identifier: Apache-2.0
#include "objects.hpp"

namespace lagometer::mqtt {

Context::Context(const lagometer_context_config& config)
    : settings_(Settings::from(view(config.profile), view(config.options))) {
  // With several hosts, the broker is on the first one.
  const auto network = view(config.network).empty() ? nlohmann::json() : nlohmann::json::parse(view(config.network));
  if (network.contains("hosts")) settings_.broker_host = network.at("hosts").at(0).get<std::string>();
  if (config.domain != 0)
    throw Error(LAGOMETER_UNSUPPORTED, "mqtt: there are no domains; leave it 0, not " + std::to_string(config.domain));
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "mqtt: this adapter sets up no security");
}

Client& Context::shared_client() {
  const std::scoped_lock lock(mutex_);
  if (client_ == nullptr) client_ = std::make_unique<Client>(settings_, Client::Run::by_library);
  return *client_;
}

Writer::Writer(Node& node, const lagometer_endpoint_config& config)
    : context_(node.context),
      endpoint_(Type::endpoint(config)),
      quality_(context_.settings().quality(endpoint_.reliable)),
      buffer_(endpoint_.type.bytes_max) {}

lagometer_status Writer::borrow(uint64_t bytes, lagometer_message& message) const {
  endpoint_.type.check(bytes);
  message.origin = LAGOMETER_ORIGIN_COPIED;
  message.region_count = 1;
  message.regions[0] = {buffer_.data(), bytes};
  message.adapter_data = nullptr;
  return LAGOMETER_OK;
}

lagometer_status Writer::commit(const lagometer_message& message) {
  client_->publish(endpoint_.topic, buffer_.data(), message.regions[0].size, quality_);
  return LAGOMETER_OK;
}

std::string Writer::describe() const {
  nlohmann::json settings{{"qos", {{"value", quality_}, {"default", 0}}}};
  if (client_ != nullptr) client_->describe(settings);
  return nlohmann::json{{"settings", settings}, {"paste", nlohmann::json::array()}}.dump();
}

}  // namespace lagometer::mqtt
