// SPDX-License-Identifier: Apache-2.0
#include "client.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "descriptor.hpp"

namespace lagometer::mqtt {

namespace {

constexpr auto kLongest = std::chrono::seconds(10);  // for an answer from the broker
constexpr int kRefused = 128;                        // granted for a subscription that was refused

std::string at(const std::string& host) { return host + ":" + std::to_string(kBrokerPort); }

std::string reason_of(int code) { return code == MOSQ_ERR_ERRNO ? std::strerror(errno) : mosquitto_strerror(code); }

int socket_option(int socket, int level, int option) noexcept {
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(socket, level, option, &value, &size);
  return value;
}

/// Set up once per process; the library counts, and would tear down what other clients still use.
void start_library() {
  static const int code = mosquitto_lib_init();
  if (code != MOSQ_ERR_SUCCESS) throw Error(LAGOMETER_FAILED, "mqtt: starting libmosquitto: " + reason_of(code));
}

}  // namespace

Client::Client(const Settings& settings, Run run) : run_(run), settings_(settings) {
  start_library();
  // No name: the broker assigns one, so that no two clients can have the same.
  handle_.reset(mosquitto_new(nullptr, true, this));
  if (handle_ == nullptr) throw_system_error("mqtt: making a client");
  set_callbacks();
  check(mosquitto_int_option(handle_.get(), MOSQ_OPT_TCP_NODELAY, settings.tcp_nodelay ? 1 : 0), "setting tcp_nodelay");
  check(mosquitto_int_option(handle_.get(), MOSQ_OPT_SEND_MAXIMUM, settings.max_inflight_messages),
        "setting max_inflight_messages");
  check(mosquitto_connect(handle_.get(), settings.broker_host.c_str(), kBrokerPort, kKeepalive_s),
        "connecting to the broker at " + at(settings_.broker_host));
  size_buffers();
  if (run_ == Run::by_library) check(mosquitto_loop_start(handle_.get()), "starting libmosquitto's thread");
  await([this] { return connected_.has_value(); }, "accept the connection");
  if (*connected_ != 0) {
    throw Error(LAGOMETER_FAILED, "mqtt: the broker at " + at(settings_.broker_host) +
                                      " refused the connection: " + mosquitto_connack_string(*connected_));
  }
}

Client::~Client() {
  closing_.store(true);
  mosquitto_disconnect(handle_.get());
  if (run_ == Run::by_library) mosquitto_loop_stop(handle_.get(), false);
}

void Client::set_callbacks() noexcept {
  mosquitto_connect_callback_set(handle_.get(), &Client::on_connect);
  mosquitto_subscribe_callback_set(handle_.get(), &Client::on_subscribe);
  mosquitto_message_callback_set(handle_.get(), &Client::on_message);
  mosquitto_disconnect_callback_set(handle_.get(), &Client::on_disconnect);
}

void Client::size_buffers() {
  const int bytes = settings_.socket_buffer_bytes;
  if (bytes == 0) return;
  // The forced option exceeds the system's limit and needs CAP_NET_ADMIN.
  for (const auto& [forced, plain] : {std::pair{SO_SNDBUFFORCE, SO_SNDBUF}, std::pair{SO_RCVBUFFORCE, SO_RCVBUF}}) {
    if (setsockopt(socket(), SOL_SOCKET, forced, &bytes, sizeof bytes) != 0 &&
        setsockopt(socket(), SOL_SOCKET, plain, &bytes, sizeof bytes) != 0) {
      throw_system_error("mqtt: sizing a socket's buffer");
    }
  }
}

void Client::await(const std::function<bool()>& happened, const std::string& what) {
  const auto give_up_at = std::chrono::steady_clock::now() + kLongest;
  std::unique_lock lock(mutex_);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > give_up_at)
      throw Error(LAGOMETER_FAILED,
                  "mqtt: the broker at " + at(settings_.broker_host) + " did not " + what + " within 10 s");
    if (run_ == Run::by_library) {
      answered_.wait_until(lock, give_up_at);
      continue;
    }
    lock.unlock();
    check(mosquitto_loop(handle_.get(), 100, 1), "waiting for the broker to " + what);
    lock.lock();
  }
}

uint32_t Client::subscribe(Receiver& receiver, int quality) {
  const std::scoped_lock one_at_a_time(subscribing_);
  const uint32_t slot = receivers_.add(receiver);
  try {
    int number = 0;
    const std::string what = "subscribe to '" + receiver.topic() + "'";
    check(mosquitto_subscribe(handle_.get(), &number, receiver.topic().c_str(), quality), what);
    await([&] { return granted_.contains(number); }, what);
    const int granted = granted_.at(number);
    if (granted == kRefused || granted < quality)
      throw Error(LAGOMETER_FAILED, "mqtt: the broker does not let '" + receiver.topic() +
                                        "' be subscribed to with quality of service " + std::to_string(quality));
    ++counts_[receiver.topic()];
  } catch (...) {
    receivers_.remove(slot);
    throw;
  }
  return slot;
}

void Client::unsubscribe(const Receiver& receiver, uint32_t slot) noexcept {
  const std::scoped_lock one_at_a_time(subscribing_);
  receivers_.remove(slot);
  const auto found = counts_.find(receiver.topic());
  if (found == counts_.end() || --found->second > 0) return;
  mosquitto_unsubscribe(handle_.get(), nullptr, receiver.topic().c_str());
  counts_.erase(found);
}

void Client::publish(const std::string& topic, const uint8_t* data, uint64_t bytes, int quality) {
  const int code =
      mosquitto_publish(handle_.get(), nullptr, topic.c_str(), static_cast<int>(bytes), data, quality, false);
  if (code != MOSQ_ERR_SUCCESS) check(code, "publishing on '" + topic + "'");
}

void Client::read() {
  if (wants_write()) write();
  const int code = mosquitto_loop_read(handle_.get(), 1);
  if (code != MOSQ_ERR_SUCCESS) check(code, "reading from the broker");
}

void Client::write() {
  const int code = mosquitto_loop_write(handle_.get(), 1);
  if (code != MOSQ_ERR_SUCCESS) check(code, "writing to the broker");
}

void Client::check(int code, const std::string& what) const {
  if (code == MOSQ_ERR_SUCCESS) return;
  throw Error(code == MOSQ_ERR_NOMEM ? LAGOMETER_NO_RESOURCE : LAGOMETER_FAILED,
              "mqtt: " + what + ": " + reason_of(code));
}

void Client::describe(nlohmann::json& settings) const {
  settings["tcp_nodelay"] = {{"value", socket_option(socket(), IPPROTO_TCP, TCP_NODELAY) != 0}, {"default", false}};
  settings["send_buffer_bytes"] = {{"value", socket_option(socket(), SOL_SOCKET, SO_SNDBUF)}, {"default", nullptr}};
  settings["receive_buffer_bytes"] = {{"value", socket_option(socket(), SOL_SOCKET, SO_RCVBUF)}, {"default", nullptr}};
  settings["run_by"] = {{"value", run_ == Run::by_library ? "libmosquitto's thread" : "the node's thread"},
                        {"default", "libmosquitto's thread"}};
}

void Client::on_connect(mosquitto*, void* self, int code) noexcept {
  auto* const client = static_cast<Client*>(self);
  const std::scoped_lock lock(client->mutex_);
  client->connected_ = code;
  client->answered_.notify_all();
}

void Client::on_subscribe(mosquitto*, void* self, int message, int count, const int* granted) noexcept {
  auto* const client = static_cast<Client*>(self);
  const std::scoped_lock lock(client->mutex_);
  client->granted_[message] = count > 0 ? granted[0] : kRefused;
  client->answered_.notify_all();
}

void Client::on_message(mosquitto*, void* self, const mosquitto_message* message) noexcept {
  auto& receivers = static_cast<Client*>(self)->receivers_;
  const uint32_t end = receivers.end();
  for (uint32_t slot = 0; slot < end; ++slot) {
    receivers.serve(slot, [&](Receiver& receiver) noexcept {
      if (receiver.topic() == message->topic) receiver.arrived(*message);
    });
  }
}

void Client::on_disconnect(mosquitto*, void* self, int code) noexcept {
  const auto* const client = static_cast<const Client*>(self);
  if (code == 0 || client->closing_.load() || client->run_ == Run::by_caller) return;  // a caller gets it as an error
  host->fail(host->self, to_c("mqtt: the broker closed the connection: see what the daemon wrote"));
}

}  // namespace lagometer::mqtt
