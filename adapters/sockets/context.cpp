// SPDX-License-Identifier: Apache-2.0
#include "context.hpp"

#include <sched.h>
#include <sys/socket.h>

#include <limits>

namespace lagometer::sockets {

namespace {

constexpr std::string_view buffer_option = "socket_buffer_bytes";
constexpr int matched_buffer_bytes = 4 << 20;

int socket_option(int socket, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(socket, SOL_SOCKET, option, &value, &size);
  return value;
}

void size_buffer(int socket, int forced, int option, int bytes) {
  // The forced option exceeds the system's limit and needs CAP_NET_ADMIN.
  if (setsockopt(socket, SOL_SOCKET, forced, &bytes, sizeof bytes) == 0) return;
  if (setsockopt(socket, SOL_SOCKET, option, &bytes, sizeof bytes) != 0) throw_system_error("sizing a socket's buffer");
}

}  // namespace

Context::Context(const lagometer_context_config& config)
    : name_(view(config.name)),
      folder_(rendezvous::adapter_folder(view(config.runtime_directory), config.domain, abilities.adapter)) {
  refuse_security(abilities.adapter, config);
  if (floor::matched_profile(abilities.adapter, view(config.profile))) buffer_bytes_ = matched_buffer_bytes;
  buffer_bytes_ = floor::parse_options(abilities.adapter, view(config.options), {buffer_option})
                      .value(std::string(buffer_option), buffer_bytes_);
  if (!abilities.between_hosts) return;
  const rendezvous::Link link(config);
  if (link.address.empty()) return;
  link_ = link.address;
  answering_ = std::make_shared<Answering>(link_, link.place(abilities.adapter, config.domain), served_set());
}

Context::~Context() {
  if (!thread_.joinable()) return;
  set_->trigger();
  thread_.join();
}

std::filesystem::path Context::topic_folder(std::string_view topic) const {
  return rendezvous::topic_folder(folder_, topic);
}

Announced Context::announce(const std::string& topic, const nlohmann::json& facts) {
  if (!answering_) return std::make_shared<rendezvous::Announcement>(topic_folder(topic), facts);
  const uint32_t entry = answering_->add(topic, facts);
  return {nullptr, [answering = answering_, entry](void*) { answering->remove(entry); }};
}

BufferSizes Context::size_buffers(int socket) const {
  const BufferSizes before = buffer_sizes(socket);
  if (buffer_bytes_ != 0) {
    size_buffer(socket, SO_SNDBUFFORCE, SO_SNDBUF, buffer_bytes_);
    size_buffer(socket, SO_RCVBUFFORCE, SO_RCVBUF, buffer_bytes_);
  }
  return before;
}

std::shared_ptr<EpollSet> Context::served_set() {
  const std::scoped_lock lock(start_mutex_);
  if (!set_) {
    set_ = std::make_shared<EpollSet>();
    thread_ = std::thread([this] { serve(); });
  }
  return set_;
}

void Context::serve() noexcept {
  const std::string role = std::string(abilities.adapter) + "-receive " + name_;
  host->thread_begin(host->self, LAGOMETER_ROLE_RECEIVE, to_c(role));
  Events events{};
  for (bool stopping = false; !stopping;) {
    const auto happened = set_->wait(events, std::numeric_limits<int64_t>::max());
    const int64_t woken_ns = now_ns();
    const auto cpu = static_cast<uint32_t>(sched_getcpu());
    // First all marks, then the calls: a listener is called once, however many of its sockets are readable.
    for (const epoll_event& event : happened) {
      if (event.data.u64 == EpollSet::triggered) {
        stopping = true;
      } else {
        set_->serve(event, [](Source& source, uint32_t tag) noexcept { source.readable(tag); });
      }
    }
    for (const epoll_event& event : happened) {
      if (event.data.u64 == EpollSet::triggered) continue;
      set_->serve(event, [&](Source& source, uint32_t) noexcept { source.deliver(woken_ns, cpu); });
    }
  }
  host->thread_end(host->self);
}

BufferSizes buffer_sizes(int socket) noexcept {
  return {.send_bytes = socket_option(socket, SO_SNDBUF), .receive_bytes = socket_option(socket, SO_RCVBUF)};
}

std::string describe_socket(BufferSizes now, BufferSizes vendor_default, bool is_reader) {
  nlohmann::json settings = nlohmann::json::object();
  const auto bytes = [is_reader](BufferSizes sizes) { return is_reader ? sizes.receive_bytes : sizes.send_bytes; };
  settings[is_reader ? "receive_buffer_bytes" : "send_buffer_bytes"] = {{"value", bytes(now)},
                                                                        {"default", bytes(vendor_default)}};
  settings["history"] = {{"value", "the kernel's socket buffer"}, {"default", "the kernel's socket buffer"}};
  return nlohmann::json{{"settings", settings}, {"paste", nlohmann::json::array()}}.dump();
}

std::string probe_socket() {
  nlohmann::json reliability = {"best_effort"};
  nlohmann::json history = {"keep_last"};
  if (abilities.reliable) reliability.push_back("reliable");
  if (abilities.keep_all) history.push_back("keep_all");
  const nlohmann::json result{
      {"version", floor::version()},
      {"abilities", {{"reliability", reliability}, {"history", history}, {"waitset_contexts", true}}},
      {"limits", {{"payload_bytes_max", abilities.payload_bytes_max}}}};
  return result.dump();
}

}  // namespace lagometer::sockets
