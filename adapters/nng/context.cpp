// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

namespace lagometer::nng {

Choices::Choices(std::string_view text) {
  brokerless::Options options(abilities.adapter, text);
  transport = options.word("transport", {"ipc", "tcp", "inproc"});
  send_buffer_messages = options.integer("send_buffer_messages", 1, queue_messages_max);
  receive_buffer_messages = options.integer("receive_buffer_messages", 1, queue_messages_max);
  options.end();
}

Context::Context(const lagometer_context_config& config)
    : choices_(view(config.options)),
      meeting_(abilities, config, choices_.transport, "0"),
      door_(meeting_.new_socket_path("knock"), "nng-meet " + std::string(view(config.name)), meeting_.directory()) {
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "nng: this adapter sets up no security");
  // nng sets no socket buffers, so both profiles are the same; this only rejects unknown ones.
  static_cast<void>(floor::matched_profile(abilities.adapter, view(config.profile)));
}

std::string Context::describe() const {
  nlohmann::json result = floor::describe_context(abilities);
  result["settings"]["transport"] = {{"value", meeting_.transport()}, {"default", nullptr}};
  result["transport"] = meeting_.claim();
  return result.dump();
}

std::optional<int> queue_messages(std::optional<int> option, const brokerless::Endpoint& endpoint) {
  if (option) return option;
  if (endpoint.depth_asked.value_or(1) <= queue_messages_max) return endpoint.depth_asked;
  throw Error(LAGOMETER_INVALID, "nng: the depth must be 1 to " + std::to_string(queue_messages_max) + " (topic '" +
                                     endpoint.topic + "')");
}

}  // namespace lagometer::nng
