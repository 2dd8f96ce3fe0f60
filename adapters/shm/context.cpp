// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <algorithm>

#include "reader.hpp"
#include "rendezvous.hpp"

namespace lagometer::shm {

namespace {

constexpr std::string_view keep_all_option = "keep_all_messages";
/// KEEP_ALL must end somewhere: where a queue of the largest messages would take this much.
constexpr uint64_t keep_all_bytes = 4ULL << 20;

}  // namespace

Context::Context(const lagometer_context_config& config)
    : name_(view(config.name)),
      folder_(rendezvous::adapter_folder(view(config.runtime_directory), config.domain, abilities.adapter)),
      keep_all_messages_(floor::parse_options(abilities.adapter, view(config.options), {keep_all_option})
                             .value(std::string(keep_all_option), 0U)) {
  refuse_security(abilities.adapter, config);
  static_cast<void>(
      floor::matched_profile(abilities.adapter, view(config.profile)));  // both profiles are the same here
  if (keep_all_messages_ > floor::depth_max) {
    throw Error(LAGOMETER_INVALID,
                "shm: option 'keep_all_messages' must be at most " + std::to_string(floor::depth_max));
  }
}

Context::~Context() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_seq_cst);
  reinterpret_cast<Bell*>(bell_->data())->ring();
  thread_.join();
  bell_->unlink();
}

std::string Context::new_path(std::string_view prefix) const {
  return (folder_ / rendezvous::unique_name(prefix)).string();
}

std::filesystem::path Context::topic_folder(std::string_view topic) const {
  return rendezvous::topic_folder(folder_, topic);
}

uint32_t Context::queue_limit(const floor::Endpoint& endpoint) const noexcept {
  if (!endpoint.keep_all) return endpoint.depth;
  if (keep_all_messages_ != 0) return keep_all_messages_;
  return static_cast<uint32_t>(std::clamp<uint64_t>(keep_all_bytes / endpoint.type.bytes_max, 8, 1024));
}

std::shared_ptr<Segment> Context::listener_bell() {
  const std::scoped_lock lock(start_mutex_);
  if (!bell_) {
    bell_ = Segment::make(new_path("b"), sizeof(Bell));
    thread_ = std::thread([this] { serve_listeners(); });
  }
  return bell_;
}

void Context::serve_listeners() noexcept {
  const std::string role = "shm-receive " + name_;
  host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c(role));
  auto& bell = *reinterpret_cast<Bell*>(bell_->data());
  const auto anything = [this]() noexcept {
    bool found = stopping_.load(std::memory_order_seq_cst);
    for (uint32_t slot = 0; !found && slot < listeners_->end(); ++slot) {
      listeners_->serve(slot, [&found](const Reader& reader) noexcept { found = reader.has_news(); });
    }
    return found;
  };
  while (!stopping_.load(std::memory_order_seq_cst)) {
    bool served = false;
    for (uint32_t slot = 0; slot < listeners_->end(); ++slot) {
      listeners_->serve(slot, [&served](Reader& reader) noexcept { served = reader.notify_listener() || served; });
    }
    if (!served) bell.sleep(anything, never_ns);
  }
  host->thread_end(host->self);
}

}  // namespace lagometer::shm
