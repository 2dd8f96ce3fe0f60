// SPDX-License-Identifier: Apache-2.0
// One worker's objects, from its plan to its last record: adapters, contexts, nodes, endpoints, lanes.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "adapter_host.hpp"
#include "endpoint_user.hpp"
#include "lagometer/executor.h"
#include "loop.hpp"
#include "node.hpp"
#include "plan.hpp"
#include "recorder.hpp"
#include "stage.hpp"

namespace lagometer::engine {

class Session {
 public:
  /// Loads, creates and enables everything and starts the nodes' threads. Throws AdapterMissing, AdapterError,
  /// std::runtime_error.
  Session(const Plan& plan, int records_descriptor);
  /// Ends the nodes' threads and destroys all objects of the adapters.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// When endpoints began to hear their peers.
  [[nodiscard]] int64_t enabled_ns() const { return enabled_ns_; }

  /// Adapters and effective settings, for the event `ready`.
  [[nodiscard]] nlohmann::json describe_adapters() const;
  [[nodiscard]] nlohmann::json describe_settings() const;

  /// Asks each writer for its readers, and sends a probe on it. Returns whether any writer found a new one.
  bool look_for_readers(bool probing);
  /// [{"node", "reader", "topic", "streams"}] of readers that still miss probes.
  [[nodiscard]] nlohmann::json missing() const;
  /// [{"node", "side", "topic", "total"}] of endpoints that have met others with incompatible quality of service, each
  /// once.
  [[nodiscard]] nlohmann::json newly_incompatible();

  void start(int64_t at_ns, int64_t source_stop_ns);
  /// Ends all measuring; returns when no thread of a node and no callback is running.
  void stop();

  /// Writers and readers, for the event `done`.
  [[nodiscard]] nlohmann::json describe_writers() const;
  [[nodiscard]] nlohmann::json describe_readers() const;
  /// Warnings for readers of the results, found while measuring. For the event `done`.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// What went wrong in an adapter since the start, or "".
  [[nodiscard]] std::string failure() const;
  [[nodiscard]] const Recorder& recorder() const { return *recorder_; }

 private:
  using Deleter = std::function<void()>;
  /// The target of a reader's on_data, or of a node's timer. Callbacks come on the middleware's threads, and sometimes
  /// from inside another node's publish.
  struct Callback : EndpointUser {
    Callback(const Stage& when, Node& of, Input* into) : EndpointUser(when), node(of), input(into) {}
    void called() noexcept;
    Node& node;
    Input* input;  // null: the timer
    std::atomic<uint32_t> running{0};
  };

  const Adapter& adapter_of(uint32_t context) const { return adapters_[plan_.contexts[context].adapter]; }
  /// An adapter's answer as JSON, or as text if it is not JSON.
  static nlohmann::json parsed(const std::string& text);
  const nlohmann::json& abilities_of(uint32_t context) const { return abilities_[plan_.contexts[context].adapter]; }
  void load_adapters();
  void create_contexts();
  void create_node(const NodePlan& plan);
  lagometer_type* create_type(const EndpointPlan& endpoint);
  struct Wanted;
  void want(Wanted& wanted, const EndpointPlan& endpoint);
  void want_writer(Wanted& wanted, const Output& output, EndpointUser& user);
  void want_reader(Wanted& wanted, const Node& node, const Input& input);
  void create_writer(Node& node, Output& output, EndpointUser& user);
  void create_reader(Node& node, Input& input);
  void create_client(Node& node, Output& output, EndpointUser& user);
  void create_server(Node& node, Output& output, EndpointUser& user);
  /// Throws if the adapter has only topics.
  const lagometer_services_table& services_of(uint32_t context, lagometer_node* node) const;
  void keep_writer(Output& output, lagometer_writer* handle, EndpointUser& user);
  void keep_reader(Input& input, lagometer_reader* handle);
  /// Creates a dispatch thread for each node, or one for all, with what it waits on.
  void create_loops();
  void create_waitset(Loop& loop, const std::vector<Node*>& nodes);
  /// Throws unless these readers of nodes served by one thread may share a waitset.
  void check_waitset_spans(const std::vector<Node*>& nodes, const std::vector<const Input*>& readers) const;
  /// If the plan has one thread for all nodes and the adapter calls them back, its executor must also be shared.
  void share_executor();
  /// Contexts whose adapters call these nodes back: those of readers, and of timers that an executor fires.
  [[nodiscard]] std::vector<uint32_t> calling_contexts() const;
  [[nodiscard]] const lagometer_executor_table* executor_of(uint32_t context) const;
  /// Creates a node's timer in the adapter's executor.
  void create_timer(Node& node);
  /// Asks an endpoint for stamps of its layers if the plan wants them; returns whether it provides any.
  bool ask_for_stamps(uint32_t context, uint32_t kind, void* endpoint);
  void create_recorder(int descriptor);
  void enable_all();
  lagometer_node* node_in(uint32_t context, const std::string& name);
  /// What a writer's payloads are filled with; null: the middleware's buffer stays as it is.
  const Content* content_of(const WriterPlan& writer);
  EndpointUser& user_of(const Input& input) const;
  /// How its adapter identifies an endpoint, and which of its events are requested.
  static void ask_for_events(EndpointUser& user, const nlohmann::json& abilities, const char* side,
                             lagometer_endpoint_config& config);
  /// Calls f(node's name, side, endpoint's plan, its EndpointUser) for each writer and each reader.
  template <typename Visit>
  void for_each_endpoint(Visit visit);

  Plan plan_;
  struct MadeContent {
    ContentPlan plan;
    bool text;
    Content content;
  };
  std::deque<MadeContent> contents_;  // each created once
  Stage stage_;
  FailureFlag failure_;
  std::deque<Adapter> adapters_;
  std::vector<nlohmann::json> probed_;     // what each adapter reports about itself
  std::vector<nlohmann::json> abilities_;  // the abilities in it
  std::vector<lagometer_context*> contexts_;
  std::vector<std::pair<std::pair<uint32_t, std::string>, lagometer_node*>> node_handles_;
  std::deque<Node> nodes_;
  std::deque<Loop> loops_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::vector<std::unique_ptr<EndpointUser>> writer_users_;  // in the order of the nodes and their outputs
  std::vector<std::string> warnings_;
  std::vector<const EndpointUser*> incompatible_;  // already reported
  std::unique_ptr<Recorder> recorder_;
  std::vector<Deleter> deleters_;  // in order of creation; run backwards
  int64_t enabled_ns_ = 0;
  bool stopped_ = false;
};

}  // namespace lagometer::engine
