// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

namespace lagometer::zeromq {

namespace {

constexpr int io_threads_default = ZMQ_IO_THREADS_DFLT;
constexpr int io_threads_max = 64;
constexpr int hwm_max = 1'000'000;
constexpr int buffer_bytes_max = 1 << 30;
constexpr int matched_buffer_bytes = 4 << 20;

}  // namespace

Choices::Choices(std::string_view text) {
  brokerless::Options options(abilities.adapter, text);
  transport = options.word("transport", {"ipc", "tcp", "inproc"});
  io_threads = options.integer("io_threads", 1, io_threads_max).value_or(io_threads_default);
  send_hwm = options.integer("send_hwm", 0, hwm_max);
  receive_hwm = options.integer("receive_hwm", 0, hwm_max);
  socket_buffer_bytes = options.integer("socket_buffer_bytes", 1, buffer_bytes_max);
  options.end();
}

Context::Context(const lagometer_context_config& config)
    : choices_(view(config.options)),
      meeting_(abilities, config, choices_.transport, "*"),
      door_(meeting_.new_socket_path("knock"), "zeromq-meet " + std::string(view(config.name)), meeting_.directory()),
      library_(Library::open(choices_.io_threads)) {
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "zeromq: this adapter sets up no security");
  const bool matched = floor::matched_profile(abilities.adapter, view(config.profile));
  if (choices_.socket_buffer_bytes && meeting_.transport() != "tcp")
    throw Error(LAGOMETER_INVALID, "zeromq: socket_buffer_bytes acts on TCP alone, and the transport is " +
                                       meeting_.transport() + ": leave it out, or set transport: tcp");
  if (matched && !choices_.socket_buffer_bytes) choices_.socket_buffer_bytes = matched_buffer_bytes;
}

std::string Context::describe() const {
  brokerless::Settings settings;
  settings.put("transport", meeting_.transport(), nullptr, "");
  settings.put("ZMQ_IO_THREADS", choices_.io_threads, io_threads_default,
               "zmq_ctx_set(context, ZMQ_IO_THREADS, " + std::to_string(choices_.io_threads) + ");");
  nlohmann::json result = settings.describe("a C program, after zmq_ctx_new()");
  result["transport"] = meeting_.claim();
  return result.dump();
}

}  // namespace lagometer::zeromq
