// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <algorithm>
#include <limits>

#include "options.hpp"
#include "reader.hpp"

namespace lagometer::lcm {

namespace {

constexpr int64_t never_ns = std::numeric_limits<int64_t>::max();
constexpr std::string_view vendor_url = "udpm://239.255.76.67:7667?ttl=0";
constexpr int matched_buffer_bytes = 4 << 20;

// Ports below those that the kernel assigns: a block for each trial, with a port for each domain. Groups would not
// work: a socket gets everything sent to its port for any group that anybody on the host has joined.
constexpr uint32_t first_port = 10'000;
constexpr uint32_t ports_per_trial = 256;
constexpr uint32_t trials = 80;

/// FNV-1a: the same in every process of a trial, which std::hash does not guarantee.
uint32_t hash(std::string_view text) noexcept {
  uint32_t value = 2'166'136'261U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16'777'619U;
  return value;
}

std::string make_url(const lagometer_context_config& config, const Choices& choices) {
  if (config.domain >= ports_per_trial) {
    throw Error(LAGOMETER_INVALID, "lcm: the domain must be 0 to " + std::to_string(ports_per_trial - 1) + ", not " +
                                       std::to_string(config.domain));
  }
  // Each host has its own folder for the trial, so across hosts the trial has a name.
  std::string trial_name(view(config.runtime_directory));
  const bool between_hosts =
      !view(config.network).empty() && nlohmann::json::parse(view(config.network)).contains("address");
  if (between_hosts) trial_name = nlohmann::json::parse(view(config.network)).value("trial", "");
  const uint32_t trial = hash(trial_name) % trials;
  const uint32_t port = first_port + trial * ports_per_trial + config.domain;
  std::string url = "udpm://239.255.76.67:" + std::to_string(port) + (between_hosts ? "?ttl=1" : "?ttl=0");
  if (choices.receive_buffer_bytes) url += "&recv_buf_size=" + std::to_string(*choices.receive_buffer_bytes);
  return url;
}

Choices choose(const lagometer_context_config& config) {
  if (config.security.size != 0) throw Error(LAGOMETER_UNSUPPORTED, "lcm: it has no security");
  Choices choices(view(config.options));
  const bool matched = floor::matched_profile(abilities.adapter, view(config.profile));
  if (matched && !choices.receive_buffer_bytes) choices.receive_buffer_bytes = matched_buffer_bytes;
  return choices;
}

}  // namespace

Choices::Choices(std::string_view text) {
  brokerless::Options options(abilities.adapter, text);
  receive_buffer_bytes = options.integer("receive_buffer_bytes", 1, 1 << 30);
  options.end();
}

Context::Context(const lagometer_context_config& config)
    : name_(view(config.name)), url_(make_url(config, choose(config))), instance_(std::make_shared<Instance>(url_)) {}

Context::~Context() {
  if (!thread_.joinable()) return;
  set_.trigger();
  thread_.join();
}

void Context::serve_listeners() {
  const std::scoped_lock lock(start_mutex_);
  if (thread_.joinable()) return;
  set_.watch(instance_->descriptor());
  thread_ = std::thread([this] { serve(); });
}

void Context::serve() noexcept {
  const std::string role = "lcm-handle " + name_;
  host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c(role));
  lagometer_status status = LAGOMETER_OK;
  while (status == LAGOMETER_OK && set_.wait(never_ns) == brokerless::PollSet::Woken::readable) {
    status = guarded([this] {
      instance_->handle();
      return LAGOMETER_OK;
    });
  }
  host->thread_end(host->self);
}

std::string Context::describe() const {
  nlohmann::json result = floor::describe_context(abilities);
  result["settings"]["url"] = {{"value", url_}, {"default", vendor_url}};
  result["paste"].push_back({{"file", "the environment"}, {"text", "LCM_DEFAULT_URL='" + url_ + "'"}});
  return result.dump();
}

void Waitset::attach(Reader& reader) {
  reader.join(instance_);
  readers_.push_back(&reader);
}

lagometer_status Waitset::wait(int64_t until_ns) {
  if (!watches_) {
    set_.watch(instance_->descriptor());
    watches_ = true;
  }
  // Messages handled on the way to another reader's message wait with their reader, where LCM does not know about them.
  const auto has_data = [](const Reader* reader) { return reader->has_data(); };
  if (std::any_of(readers_.begin(), readers_.end(), has_data)) return LAGOMETER_OK;
  switch (set_.wait(until_ns)) {
    case brokerless::PollSet::Woken::timeout:
      return LAGOMETER_TIMEOUT;
    case brokerless::PollSet::Woken::readable:
      instance_->note_readable();
      break;
    case brokerless::PollSet::Woken::triggered:
      break;
  }
  return LAGOMETER_OK;
}

std::string to_channel(const std::string& topic) {
  if (topic.size() <= LCM_MAX_CHANNEL_NAME_LENGTH) return topic;
  throw Error(LAGOMETER_INVALID, "lcm: a channel's name has at most " + std::to_string(LCM_MAX_CHANNEL_NAME_LENGTH) +
                                     " bytes, '" + topic + "' has " + std::to_string(topic.size()));
}

}  // namespace lagometer::lcm
