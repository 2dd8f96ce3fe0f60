// SPDX-License-Identifier: Apache-2.0
// The endpoints of a session's nodes: their configurations, and the pairs of clients and servers.
#include <algorithm>

#include "lagometer/services.h"
#include "lagometer/stamps.h"
#include "loading.hpp"
#include "session.hpp"

namespace lagometer::engine {

namespace {

using nlohmann::json;

lagometer_qos to_c_qos(const Qos& qos) {
  lagometer_qos result{};
  result.size = sizeof result;
  result.abi_version = LAGOMETER_ABI_VERSION;
  result.depth = qos.depth.value_or(1);
  result.blocking_ns_max = kNanosecondsPerSecond;
  if (qos.reliable) {
    result.present |= LAGOMETER_QOS_RELIABILITY;
    result.reliability = *qos.reliable ? LAGOMETER_RELIABLE : LAGOMETER_BEST_EFFORT;
  }
  if (qos.keep_all || qos.depth) {
    result.present |= LAGOMETER_QOS_HISTORY;
    result.history = qos.keep_all.value_or(false) ? LAGOMETER_KEEP_ALL : LAGOMETER_KEEP_LAST;
  }
  if (qos.transient_local) {
    result.present |= LAGOMETER_QOS_DURABILITY;
    result.durability = *qos.transient_local ? LAGOMETER_TRANSIENT_LOCAL : LAGOMETER_VOLATILE;
  }
  if (qos.deadline_ns) {
    result.present |= LAGOMETER_QOS_DEADLINE;
    result.deadline_ns = *qos.deadline_ns;
  }
  if (qos.lifespan_ns) {
    result.present |= LAGOMETER_QOS_LIFESPAN;
    result.lifespan_ns = *qos.lifespan_ns;
  }
  if (qos.liveliness) {
    result.present |= LAGOMETER_QOS_LIVELINESS;
    result.liveliness = qos.liveliness->manual ? LAGOMETER_MANUAL_BY_TOPIC : LAGOMETER_AUTOMATIC;
    result.liveliness_lease_ns = qos.liveliness->lease_ns;
  }
  if (!qos.partition.empty()) {
    result.present |= LAGOMETER_QOS_PARTITION;
    result.partition = to_c(qos.partition);
  }
  return result;
}

}  // namespace

/// What an endpoint is created with; `config` points into the rest, so it must not move.
struct Session::Wanted {
  Wanted() = default;
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;

  lagometer_qos qos{};
  lagometer_endpoint_config config{};
};

lagometer_type* Session::create_type(const EndpointPlan& endpoint) {
  const lagometer_adapter_table& table = adapter_of(endpoint.context).table();
  lagometer_type_config config{};
  config.size = sizeof config;
  config.abi_version = LAGOMETER_ABI_VERSION;
  config.name = to_c(endpoint.type);
  config.max_bytes = endpoint.payload_bytes;
  config.instances = endpoint.qos.instances;
  if (config.instances > 0) config.flags |= LAGOMETER_TYPE_KEYED;
  lagometer_type* handle = nullptr;
  check("type_create", [&] { return table.type_create(contexts_[endpoint.context], &config, &handle); });
  deleters_.emplace_back([&table, handle] { table.type_destroy(handle); });
  return handle;
}

const Content* Session::content_of(const WriterPlan& writer) {
  const ContentPlan& wanted = writer.content ? *writer.content : plan_.content;
  if (wanted.kind == ContentKind::any) return nullptr;
  const bool text = payload_type(writer.type).text;
  for (const MadeContent& made : contents_) {
    if (made.text == text && made.plan == wanted) return &made.content;
  }
  return &contents_.emplace_back(MadeContent{wanted, text, Content(wanted, text)}).content;
}

void Session::want(Wanted& wanted, const EndpointPlan& endpoint) {
  wanted.qos = to_c_qos(endpoint.qos);
  wanted.config.size = sizeof wanted.config;
  wanted.config.abi_version = LAGOMETER_ABI_VERSION;
  wanted.config.type = create_type(endpoint);
  wanted.config.topic = to_c(endpoint.topic);
  wanted.config.qos = &wanted.qos;
}

void Session::want_writer(Wanted& wanted, const Output& output, EndpointUser& user) {
  want(wanted, output.plan());
  ask_for_events(user, abilities_of(output.plan().context), "writer", wanted.config);
}

void Session::want_reader(Wanted& wanted, const Node& node, const Input& input) {
  want(wanted, input.plan());
  wanted.config.dispatch = static_cast<uint32_t>(node.plan().dispatch);
  ask_for_events(user_of(input), abilities_of(input.plan().context), "reader", wanted.config);
  wanted.config.on_data = [](void* user) { static_cast<Callback*>(static_cast<EndpointUser*>(user))->called(); };
}

void Session::create_node(const NodePlan& plan) {
  Node& node = nodes_.emplace_back(plan, stage_, failure_);
  for (const WriterPlan& writer : plan.writers) {
    Output& output = node.outputs.emplace_back(writer, adapter_of(writer.context).table(), plan_.touch, failure_);
    writer_users_.push_back(std::make_unique<EndpointUser>(stage_));
    if (const Content* const content = content_of(writer); content != nullptr) output.fill_from(*content);
  }
  for (const ReaderPlan& reader : plan.readers) {
    Input& input = node.inputs.emplace_back(reader, static_cast<uint32_t>(node.inputs.size()),
                                            adapter_of(reader.context).table(), plan_.touch, failure_);
    callbacks_.push_back(std::make_unique<Callback>(stage_, node, &input));
  }
  auto user = writer_users_.end() - static_cast<ptrdiff_t>(node.outputs.size());
  for (Output& output : node.outputs) create_writer(node, output, **user++);
  for (Input& input : node.inputs) create_reader(node, input);
  node.prepare();
  if (node.wants_timer()) create_timer(node);
}

void Session::create_writer(Node& node, Output& output, EndpointUser& user) {
  const WriterPlan& plan = output.plan();
  if (plan.replied_on) return create_client(node, output, user);
  if (plan.answers) return create_server(node, output, user);
  Wanted wanted;
  want_writer(wanted, output, user);
  lagometer_node* parent = node_in(plan.context, node.plan().name);
  lagometer_writer* handle = nullptr;
  check("writer_create", [&] { return output.table().writer_create(parent, &wanted.config, &handle); });
  keep_writer(output, handle, user);
}

void Session::create_reader(Node& node, Input& input) {
  if (input.handle() != nullptr) return;  // belongs to a client or server and was created with its writer
  Wanted wanted;
  want_reader(wanted, node, input);
  lagometer_node* parent = node_in(input.plan().context, node.plan().name);
  lagometer_reader* handle = nullptr;
  check("reader_create", [&] { return input.table().reader_create(parent, &wanted.config, &handle); });
  keep_reader(input, handle);
}

void Session::create_client(Node& node, Output& output, EndpointUser& user) {
  const WriterPlan& plan = output.plan();
  Input& input = node.inputs[*plan.replied_on];
  Wanted request;
  Wanted reply;
  want_writer(request, output, user);
  want_reader(reply, node, input);
  lagometer_node* parent = node_in(plan.context, node.plan().name);
  const lagometer_services_table& services = services_of(plan.context, parent);
  lagometer_writer* requests = nullptr;
  lagometer_reader* replies = nullptr;
  check("client_create",
        [&] { return services.client_create(parent, &request.config, &reply.config, &requests, &replies); });
  keep_writer(output, requests, user);
  keep_reader(input, replies);
}

// A server has one writer, which sends the replies to each client as a separate stream.
void Session::create_server(Node& node, Output& output, EndpointUser& user) {
  const WriterPlan& plan = output.plan();
  Input& input = node.inputs[plan.answers->reader];
  lagometer_node* parent = node_in(plan.context, node.plan().name);
  const lagometer_services_table& services = services_of(plan.context, parent);
  output.answer_by(services);
  const auto twin = std::find_if(node.outputs.begin(), node.outputs.end(), [&](const Output& other) {
    return other.handle() != nullptr && other.plan().answers && other.plan().answers->reader == plan.answers->reader;
  });
  if (twin != node.outputs.end()) return output.share_writer_of(*twin);
  Wanted request;
  Wanted reply;
  want_reader(request, node, input);
  want_writer(reply, output, user);
  lagometer_reader* requests = nullptr;
  lagometer_writer* replies = nullptr;
  check("server_create",
        [&] { return services.server_create(parent, &request.config, &reply.config, &requests, &replies); });
  keep_writer(output, replies, user);
  keep_reader(input, requests);
}

const lagometer_services_table& Session::services_of(uint32_t context, lagometer_node* node) const {
  const Adapter& adapter = adapter_of(context);
  const auto* services = static_cast<const lagometer_services_table*>(
      adapter.table().extension(LAGOMETER_OBJECT_NODE, node, to_c(LAGOMETER_SERVICES_EXTENSION)));
  if (services == nullptr) throw AdapterError(adapter.name() + " has no request and reply (services/1)");
  if (!abi_host::is_callable(*services, LAGOMETER_SERVICES_TABLE_SIZE_1_0))
    throw AdapterError(adapter.name() + ": its services are of another version of the interface");
  return *services;
}

void Session::keep_writer(Output& output, lagometer_writer* handle, EndpointUser& user) {
  const lagometer_adapter_table& table = output.table();
  deleters_.emplace_back([&table, handle] { table.writer_destroy(handle); });
  output.attach(handle);
  user.stamped = ask_for_stamps(output.plan().context, LAGOMETER_OBJECT_WRITER, handle);
}

void Session::keep_reader(Input& input, lagometer_reader* handle) {
  const lagometer_adapter_table& table = input.table();
  deleters_.emplace_back([&table, handle] { table.reader_destroy(handle); });
  input.attach(handle);
  user_of(input).stamped = ask_for_stamps(input.plan().context, LAGOMETER_OBJECT_READER, handle);
}

void Session::ask_for_events(EndpointUser& user, const json& abilities, const char* side,
                             lagometer_endpoint_config& config) {
  user.events.offer(abilities, side);
  config.user = &user;
  config.on_event = user.events.offered() ? &EndpointUser::event : nullptr;
  config.on_policy = user.events.offered() ? &EndpointUser::tell_policy : nullptr;
}

bool Session::ask_for_stamps(uint32_t context, uint32_t kind, void* endpoint) {
  if (!plan_.layer_stamps) return false;
  const Adapter& adapter = adapter_of(context);
  const auto* stamps = static_cast<const lagometer_stamps_table*>(
      adapter.table().extension(kind, endpoint, to_c(LAGOMETER_STAMPS_EXTENSION)));
  if (stamps != nullptr && abi_host::is_callable(*stamps, LAGOMETER_STAMPS_TABLE_SIZE_1_0)) {
    check("asking for stamps", [&] { return stamps->ask(endpoint, stamps->layers); });
    return true;
  }
  const std::string warning = "no layer stamps: " + adapter.name() + " has none";
  if (std::find(warnings_.begin(), warnings_.end(), warning) == warnings_.end()) warnings_.push_back(warning);
  return false;
}

}  // namespace lagometer::engine
