// SPDX-License-Identifier: Apache-2.0
// Takes a message, destroys its writer, and looks whether what was taken is still what was sent.
#include <cstring>
#include <string>
#include <vector>

#include "bare_host.hpp"

int main(int, char** arguments) {
  const lagometer_host host = make_host();
  const lagometer_adapter_table& table = open_adapter(arguments[1], host);
  constexpr uint64_t kBytes = 4096;
  lagometer_context* context = nullptr;
  lagometer_node* node = nullptr;
  lagometer_type* type = nullptr;
  lagometer_writer* writer = nullptr;
  lagometer_reader* reader = nullptr;
  auto of_context = make<lagometer_context_config>();
  of_context.options = text("{}");
  of_context.profile = text("default");
  check(table.context_create(&of_context, &context), "context_create");
  check(table.context_enable(context), "context_enable");
  check(table.node_create(context, text("node"), &node), "node_create");
  auto of_type = make<lagometer_type_config>();
  of_type.name = text("bytes");
  of_type.max_bytes = kBytes;
  check(table.type_create(context, &of_type, &type), "type_create");
  auto qos = make<lagometer_qos>();
  auto endpoint = make<lagometer_endpoint_config>();
  endpoint.type = type;
  endpoint.topic = text("topic");
  endpoint.qos = &qos;
  check(table.writer_create(node, &endpoint, &writer), "writer_create");
  check(table.reader_create(node, &endpoint, &reader), "reader_create");
  check(table.reader_enable(reader), "reader_enable");
  check(table.writer_enable(writer), "writer_enable");
  auto message = make<lagometer_message>();
  check(table.borrow(writer, kBytes, &message), "borrow");
  std::memset(message.regions[0].data, 0x5A, kBytes);
  check(table.commit(writer, &message), "commit");
  auto sample = make<lagometer_sample>();
  uint32_t taken = 0;
  check(table.take(reader, &sample, sizeof sample, 1, &taken), "take");
  if (taken != 1) give_up("nothing was taken");
  table.writer_destroy(writer);
  const std::vector<std::vector<uint8_t>> others(256, std::vector<uint8_t>(kBytes, 0xA5));  // where memory is free
  const std::string sent(kBytes, '\x5A');
  const bool whole = std::memcmp(sample.regions[0].data, sent.data(), kBytes) == 0;
  table.release(reader, &sample, sizeof sample, 1);
  table.reader_destroy(reader);
  table.type_destroy(type);
  table.node_destroy(node);
  table.context_destroy(context);
  if (!whole) give_up("what take showed changed when its writer was destroyed");
  return others.size() == 256 ? 0 : 1;
}
