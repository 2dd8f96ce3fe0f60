// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "contract.hpp"
#include "message_queues.hpp"
#include "reopening.hpp"

namespace lagometer::conformance {

namespace {

using nlohmann::json;

json told(const lagometer_matched& matched) { return {{"count", matched.count}, {"exact", matched.exact}}; }

json told(const lagometer_counters& counters) {
  return {{"present", counters.present},
          {"lost", counters.lost},
          {"rejected", counters.rejected},
          {"overwritten", counters.overwritten},
          {"deadline_missed", counters.deadline_missed},
          {"resent", counters.resent}};
}

long entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator{});
}

long files_below(const char* folder) {
  std::error_code gone;
  long files = 0;
  for (std::filesystem::recursive_directory_iterator at(folder, gone), end; at != end; at.increment(gone)) {
    files += at->is_directory(gone) ? 0 : 1;
    if (gone) break;
  }
  return files;
}

/// In the IPC namespace; 0 if they can't be seen.
long message_queues() {
  const supervisor::MessageQueueFolder folder(true);
  return folder.path().empty() ? 0 : files_below(folder.path().c_str());
}

}  // namespace

json held_now() {
  struct stat printed{};
  fstat(STDOUT_FILENO, &printed);
  return {{"descriptors", entries("/proc/self/fd")},
          {"threads", entries("/proc/self/task")},
          {"files", files_below("/dev/shm")},
          {"message_queues", message_queues()},
          {"printed_bytes", printed.st_size}};
}

Peer::~Peer() { close(); }

void Peer::close() noexcept {
  for (auto& [id, flood] : floods_) {
    flood->ended.store(true);
    if (flood->thread.joinable()) flood->thread.join();
  }
  floods_.clear();
  for (auto& [id, inbox] : inboxes_) {
    if (poller_ && inbox->polled()) poller_->remove(*inbox);
  }
  inboxes_.clear();
  writers_.clear();
  contexts_.clear();
  poller_.reset();
}

json Peer::answer(const json& order) {
  static const std::map<std::string, Handler> handlers = {
      {"load", &Peer::load},          {"context", &Peer::make_context},
      {"writer", &Peer::make_writer}, {"reader", &Peer::make_reader},
      {"probe", &Peer::probe},        {"send", &Peer::send},
      {"flood", &Peer::flood},        {"calm", &Peer::calm},
      {"heard", &Peer::heard},        {"stall", &Peer::stall},
      {"resume", &Peer::resume},      {"matched", &Peer::matched},
      {"counters", &Peer::counters},  {"describe", &Peer::describe},
      {"origin", &Peer::origin},      {"destroy", &Peer::destroy},
      {"reopen", &Peer::reopen},      {"contract", &Peer::contract},
      {"held", &Peer::held}};
  try {
    const std::string what = order.at("do").get<std::string>();
    const auto handler = handlers.find(what);
    if (handler == handlers.end()) throw std::runtime_error("no order '" + what + "'");
    begin_order();
    json answer = (this->*handler->second)(order);
    answer["ok"] = true;
    return answer;
  } catch (const Refusal& refusal) {
    return {{"ok", false}, {"call", refusal.call()}, {"status", refusal.status()}, {"reason", refusal.reason()}};
  } catch (const std::exception& error) {
    return {{"ok", false}, {"reason", error.what()}};
  }
}

json Peer::load(const json& order) {
  runtime_directory_ = order.at("runtime_directory").get<std::string>();
  std::filesystem::create_directories(runtime_directory_);
  adapter_ = std::make_unique<Adapter>(order.at("library").get<std::string>());
  const lagometer_string name = adapter_->table().name;
  return {{"name", std::string(name.data, name.size)}, {"waitsets", adapter_->table().waitset_create != nullptr}};
}

json Peer::make_context(const json& order) {
  const ContextSpec spec{.domain = order.value("domain", 0U),
                         .name = order.at("id").get<std::string>(),
                         .profile = order.value("profile", std::string("default")),
                         .options = order.value("options", json::object()).dump(),
                         .runtime_directory = runtime_directory_,
                         .network = order.value("network", json::object()).dump(),
                         .security = order.contains("security") ? order.at("security").dump() : ""};
  if (!adapter_) throw std::runtime_error("no adapter is loaded");
  contexts_[spec.name] = std::make_unique<Context>(*adapter_, spec);
  return json::object();
}

json Peer::make_writer(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  auto writer = std::make_unique<Writer>(found(contexts_, order.at("context")), parse_endpoint(order),
                                         order.at("stream").get<uint32_t>());
  writer->enable();
  writers_[id] = std::move(writer);
  next_sequence_[id] = 0;
  return json::object();
}

json Peer::make_reader(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  auto inbox = std::make_unique<Inbox>(found(contexts_, order.at("context")), parse_endpoint(order),
                                       order.value("work_ns", int64_t{0}));
  inbox->enable();
  if (inbox->polled()) {
    if (!poller_) poller_ = std::make_unique<Poller>();
    poller_->add(*inbox);
  }
  inboxes_[id] = std::move(inbox);
  return json::object();
}

json Peer::probe(const json&) {
  for (const auto& [id, writer] : writers_) {
    if (!floods_.contains(id)) writer->probe();
  }
  return json::object();
}

json Peer::send(const json& order) {
  const std::string id = order.at("writer").get<std::string>();
  Writer& writer = found(writers_, id);
  const auto count = order.at("count").get<uint64_t>();
  const auto bytes = order.at("bytes").get<uint64_t>();
  const auto pace_ns = order.value("pace_ns", int64_t{0});
  const bool until_rejected = order.value("until_rejected", false);
  json accepted = json::array();
  uint64_t rejected = 0;
  int64_t longest_ns = 0;
  const int64_t begin_ns = now_ns();
  for (uint64_t number = 0; number < count && !(until_rejected && rejected > 0); ++number) {
    const int64_t due_ns = begin_ns + static_cast<int64_t>(number) * pace_ns;
    const timespec due{.tv_sec = due_ns / 1'000'000'000, .tv_nsec = due_ns % 1'000'000'000};
    if (pace_ns > 0) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
    const uint64_t sequence = next_sequence_[id]++;
    const int64_t before_ns = now_ns();
    const lagometer_status status = writer.send(sequence, bytes);
    longest_ns = std::max(longest_ns, now_ns() - before_ns);
    step(number + 1, count);
    if (status == LAGOMETER_OK)
      accepted.push_back(sequence);
    else
      ++rejected;
  }
  return {{"accepted", accepted}, {"rejected", rejected}, {"longest_ns", longest_ns}, {"traces", writer.traces()}};
}

json Peer::flood(const json& order) {
  const std::string id = order.at("writer").get<std::string>();
  Writer& writer = found(writers_, id);
  const auto bytes = order.at("bytes").get<uint64_t>();
  auto flood = std::make_unique<Flood>();
  Flood& running = *flood;
  uint64_t& sequence = next_sequence_[id];
  running.thread = std::thread([&running, &writer, &sequence, bytes] {
    try {
      while (!running.ended.load())
        ++(writer.send(sequence++, bytes) == LAGOMETER_OK ? running.accepted : running.rejected);
    } catch (const Refusal& refusal) {
      running.failure = refusal.what();
    }
  });
  floods_[id] = std::move(flood);
  return json::object();
}

json Peer::calm(const json& order) {
  const std::string id = order.at("writer").get<std::string>();
  Flood& flood = found(floods_, id);
  flood.ended.store(true);
  flood.thread.join();
  json result = {{"accepted", flood.accepted}, {"rejected", flood.rejected}, {"failure", flood.failure}};
  floods_.erase(id);
  return result;
}

json Peer::heard(const json& order) {
  json readers = json::object();
  for (const auto& [id, inbox] : inboxes_) readers[id] = inbox->account(order.value("sequences", false));
  return {{"readers", readers}, {"broken", broken_reason()}};
}

json Peer::stall(const json& order) {
  Inbox& inbox = found(inboxes_, order.at("reader"));
  inbox.stall();
  if (inbox.polled()) poller_->remove(inbox);
  return json::object();
}

json Peer::resume(const json& order) {
  Inbox& inbox = found(inboxes_, order.at("reader"));
  inbox.resume();
  if (inbox.polled()) poller_->add(inbox);
  return json::object();
}

json Peer::matched(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  if (writers_.contains(id)) return told(writers_.at(id)->matched());
  return told(found(inboxes_, id).reader().matched());
}

json Peer::counters(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  if (writers_.contains(id)) return told(writers_.at(id)->counters());
  return told(found(inboxes_, id).reader().counters());
}

json Peer::describe(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  std::string text;
  if (contexts_.contains(id))
    text = adapter_->describe(LAGOMETER_OBJECT_CONTEXT, contexts_.at(id)->handle());
  else if (writers_.contains(id))
    text = adapter_->describe(LAGOMETER_OBJECT_WRITER, writers_.at(id)->handle());
  else
    text = adapter_->describe(LAGOMETER_OBJECT_READER, found(inboxes_, id).reader().handle());
  return {{"text", text}};
}

json Peer::origin(const json& order) {
  Writer& writer = found(writers_, order.at("writer"));
  const lagometer_adapter_table& table = adapter_->table();
  auto message = made<lagometer_message>();
  const auto bytes = order.at("bytes").get<uint64_t>();
  const lagometer_status status = demand("borrow", [&] { return table.borrow(writer.handle(), bytes, &message); });
  if (status != LAGOMETER_OK) return {{"origin", 0}};
  const InCall in_call("discard");
  table.discard(writer.handle(), &message);
  return {{"origin", message.origin}};
}

json Peer::destroy(const json& order) {
  const std::string id = order.at("id").get<std::string>();
  if (const auto inbox = inboxes_.find(id); inbox != inboxes_.end()) {
    if (inbox->second->polled()) poller_->remove(*inbox->second);
    inboxes_.erase(inbox);
  } else if (writers_.erase(id) == 0) {
    static_cast<void>(found(contexts_, id));
    contexts_.erase(id);
  }
  return json::object();
}

json Peer::reopen(const json& order) {
  if (!adapter_) throw std::runtime_error("no adapter is loaded");
  return reopen_again_and_again(*adapter_, {.runtime_directory = runtime_directory_,
                                            .options = order.value("options", json::object()).dump(),
                                            .network = order.value("network", json::object()).dump(),
                                            .rounds = order.at("rounds").get<uint32_t>(),
                                            .dispatch = dispatch_of(order.at("dispatch")),
                                            .depth = order.at("depth").get<uint32_t>(),
                                            .blocking_ns = order.at("blocking_ns").get<int64_t>()});
}

json Peer::contract(const json& order) {
  if (!adapter_) throw std::runtime_error("no adapter is loaded");
  judge_contract(*adapter_, order, runtime_directory_);
  return json::object();
}

json Peer::held(const json&) { return held_now(); }

}  // namespace lagometer::conformance
