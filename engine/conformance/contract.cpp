// SPDX-License-Identifier: Apache-2.0
#include "contract.hpp"

#include <algorithm>
#include <thread>

#include "made_threads.hpp"
#include "peer.hpp"

namespace lagometer::conformance {

namespace {

using nlohmann::json;

std::string name_of(lagometer_status status) {
  switch (status) {
    case LAGOMETER_UNSUPPORTED:
      return "LAGOMETER_UNSUPPORTED";
    case LAGOMETER_INVALID:
      return "LAGOMETER_INVALID";
    case LAGOMETER_NO_RESOURCE:
      return "LAGOMETER_NO_RESOURCE";
    case LAGOMETER_FAILED:
      return "LAGOMETER_FAILED";
    default:
      return "status " + std::to_string(status);
  }
}

void judge(Bed& bed, const Line& line) {
  json verdict = {{"line", line.name}, {"passed", false}, {"detail", ""}};
  try {
    line.judge(bed);
    verdict["passed"] = true;
    if (const std::string broken = broken_reason(); !broken.empty()) {
      verdict["passed"] = false;
      verdict["detail"] = "host->fail was called outside any call: " + broken;
    }
  } catch (const Absent& absent) {
    verdict["passed"] = nullptr;
    verdict["detail"] = absent.what();
  } catch (const std::exception& error) {
    verdict["detail"] = error.what();
  }
  say(verdict);
}

}  // namespace

Bed::Bed(const Adapter& given, const json& order, const std::string& runtime_directory)
    : adapter(given),
      sidecar(order.at("sidecar")),
      depth(order.at("depth").get<uint32_t>()),
      middleware_inside(order.value("middleware_inside", std::string())) {
  context.options = order.value("options", json::object()).dump();
  context.network = order.value("network", json::object()).dump();
  context.runtime_directory = runtime_directory;
}

bool Bed::declares(const char* ability, const char* value) const {
  const json& declared = sidecar.at("abilities").at(ability);
  return std::find(declared.begin(), declared.end(), value) != declared.end();
}

bool Bed::declares_stamp(const char* dispatch, const char* stamp) const {
  const json stamps = sidecar.at("abilities").value("stamps", json::object()).value(dispatch, json::array());
  return std::find(stamps.begin(), stamps.end(), stamp) != stamps.end();
}

std::optional<uint64_t> Bed::limit(const char* name) const {
  const json found = sidecar.value("limits", json::object()).value(name, json());
  return found.is_number() ? std::optional(found.get<uint64_t>()) : std::nullopt;
}

uint32_t Bed::usual_dispatch() const {
  for (const char* name : {"poll", "waitset", "listener"}) {
    if (declares("dispatch", name)) return dispatch_of(name);
  }
  throw Broken("the sidecar declares no dispatch");
}

EndpointSpec Bed::endpoint(const std::string& topic) const {
  EndpointSpec spec;
  spec.topic = topic;
  if (!declares("types", "bytes")) spec.type = "fixed";
  spec.dispatch = usual_dispatch();
  spec.qos.reliable = declares("reliability", "reliable");
  spec.qos.keep_all = !declares("history", "keep_last");
  spec.qos.depth = depth;
  return spec;
}

Pair::Pair(Bed& bed, const EndpointSpec& spec, Manner manner, std::function<void()> in_callback)
    : context(bed.adapter, bed.context, manner),
      writer(context, spec, 0, manner),
      reader(context, spec, {.user = this, .on_data = &Pair::on_data}, manner),
      spec_(spec),
      in_callback_(std::move(in_callback)) {
  if (spec.dispatch == LAGOMETER_DISPATCH_WAITSET) {
    waitset = std::make_unique<Waitset>(context);
    waitset->attach(reader);
  }
  reader.enable();
  writer.enable();
}

Pair::~Pair() {
  waitset.reset();
  reader.destroy();  // before the rest, because its listener uses it
}

void Pair::on_data(void* user) noexcept {
  auto& pair = *static_cast<Pair*>(user);
  const InCall in_call(nullptr);
  if (pair.in_callback_) pair.in_callback_();
  pair.callbacks.fetch_add(1);
}

uint32_t Pair::take_into(std::vector<Opened>& opened, bool probes) {
  return reader.take(Reader::kBatch, [&](const lagometer_sample& sample) {
    if ((sample.flags & LAGOMETER_SAMPLE_NOT_DATA) != 0) return;
    Opened one = open(sample, engine::payload_type(spec_.type));
    if (!one.damage.empty()) throw Broken(one.damage);
    const bool probe = one.envelope.kind == static_cast<uint8_t>(MessageKind::probe);
    if (probe == probes) opened.push_back(std::move(one));
  });
}

void Pair::meet() {
  std::vector<Opened> probes;
  const auto what = [&] { return std::string("no probe came (").append(counted()).append(")"); };
  wait_until(what, [&] {
    writer.probe();
    if (in_callback_ && callbacks.load() > 0) return true;
    if (!in_callback_) take_into(probes, true);
    return !probes.empty();
  });
}

std::string Pair::counted() {
  const auto told = [](const std::string& side, const lagometer_matched& matched, const std::string& others) {
    if (matched.exact == 2) return side + " can't tell how many " + others + " it found";
    return side + " counts " + std::to_string(matched.count) + " of 1 " + others;
  };
  return told("the writer", writer.matched(), "readers") + ", " + told("the reader", reader.matched(), "writers");
}

std::vector<Opened> Pair::receive(size_t count) {
  std::vector<Opened> opened;
  const int64_t give_up_at_ns = now_ns() + kPatience_ns;
  while (opened.size() < count) {
    if (waitset) waitset->wait(now_ns() + 50 * kMillisecond_ns);
    if (take_into(opened, false) == 0) rest();
    if (now_ns() > give_up_at_ns)
      throw Broken(std::to_string(opened.size()) + " of " + std::to_string(count) + " messages came");
  }
  return opened;
}

void Pair::exchange(size_t count) {
  for (size_t number = 0; number < count; ++number) {
    if (writer.send(next_sequence_++, spec_.bytes) != LAGOMETER_OK)
      throw Broken("a message was rejected, one at a time");
    receive(1);
  }
}

void wait_until(const std::string& what, const std::function<bool()>& condition) {
  wait_until([&] { return what; }, condition);
}

void wait_until(const std::function<std::string()>& what, const std::function<bool()>& condition) {
  const int64_t give_up_at_ns = now_ns() + kPatience_ns;
  while (!condition()) {
    if (now_ns() > give_up_at_ns) throw Broken(what() + " within 20 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    step();
  }
}

void must_refuse(const std::string& what, std::optional<lagometer_status> status,
                 const std::function<void()>& attempted) {
  try {
    attempted();
  } catch (const Refusal& refusal) {
    if (refusal.reason().empty()) throw Broken(refusal.call() + " refused " + what + " without calling host->fail");
    if (status && refusal.status() != *status)
      throw Broken(refusal.call() + " refused " + what + " with " + name_of(refusal.status()) + ", not with " +
                   name_of(*status) + ": " + refusal.reason());
    return;
  }
  const std::string wanted = status ? name_of(*status) : "LAGOMETER_UNSUPPORTED or LAGOMETER_INVALID";
  throw Broken(what + " was accepted: refuse it with " + wanted + ", and give the reason to host->fail");
}

void judge_contract(const Adapter& adapter, const json& order, const std::string& runtime_directory) {
  Bed bed(adapter, order, runtime_directory);
  watch_threads_of(adapter.library());
  std::vector<Line> lines;
  for (const auto& part : {loading_lines(), growing_lines(), refusing_lines(), sending_lines(), taking_lines(),
                           waiting_lines(), thread_lines()}) {
    lines.insert(lines.end(), part.begin(), part.end());
  }
  for (size_t number = order.value("from", size_t{0}); number < lines.size(); ++number) {
    say({{"begin", lines[number].name}, {"number", number}});
    step(number, lines.size());
    judge(bed, lines[number]);
  }
}

}  // namespace lagometer::conformance
