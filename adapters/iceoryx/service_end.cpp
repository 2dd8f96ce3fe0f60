// SPDX-License-Identifier: Apache-2.0
#include "service_end.hpp"

#include <algorithm>
#include <iceoryx_posh/popo/listener.hpp>
#include <utility>

namespace lagometer::iceoryx {

namespace {

constexpr uint32_t alignment = iox::CHUNK_DEFAULT_USER_PAYLOAD_ALIGNMENT;

/// Throws Error for settings that iceoryx's services can't provide.
Endpoint service_endpoint(const lagometer_endpoint_config& config) {
  Endpoint endpoint(config);
  const std::string where = " (service '" + endpoint.topic + "')";
  if (endpoint.keep_all)
    throw Error(LAGOMETER_UNSUPPORTED,
                "iceoryx: a service waits for room without an end: with keep_last the oldest makes room" + where);
  if (endpoint.kept_for_late)
    throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: a service keeps nothing for late joiners: ask for volatile" + where);
  return endpoint;
}

/// Its depth; if left open: iceoryx's default.
uint64_t queue_of(const Endpoint& endpoint, uint64_t usual) {
  if (endpoint.depth_left_open) return usual;
  if (endpoint.depth <= service_queue_max) return endpoint.depth;
  throw Error(LAGOMETER_UNSUPPORTED, "iceoryx: a client's queue of replies has 1 to " +
                                         std::to_string(service_queue_max) + " places, not " +
                                         std::to_string(endpoint.depth) + " (service '" + endpoint.topic + "')");
}

nlohmann::json describe_queue(const char* option, uint64_t capacity, uint64_t usual) {
  nlohmann::json settings = nlohmann::json::object();
  if (capacity != usual) settings[option] = {{"value", capacity}, {"default", usual}};
  return {{"settings", settings}, {"paste", nlohmann::json::array()}};
}

template <typename Result>
void require_attached(const Result& result, const Endpoint& endpoint) {
  if (!result.has_error()) return;
  throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: a listener serves at most " +
                                         std::to_string(iox::popo::Listener::capacity()) + " readers, and service '" +
                                         endpoint.topic + "' is one more");
}

class ClientEnd final : public ServiceEnd {
 public:
  ClientEnd(Context& context, Endpoint request, Endpoint reply)
      : ServiceEnd(context, std::move(reply)), request_(std::move(request)) {
    options_.responseQueueCapacity = queue_of(receives_, options_.responseQueueCapacity);
  }

  /// No reply comes before there is a request, so it may connect before anybody listens.
  void open() override {
    if (client_) return;
    client_.emplace(context_.service(request_.type, request_.topic), options_);
    // Loans the largest chunk, so that an error about missing mempools comes now.
    forget_error();
    void* const largest = loan(static_cast<uint32_t>(request_.type.bytes_max));
    if (largest == nullptr)
      throw Error(LAGOMETER_NO_RESOURCE, "iceoryx: RouDi has no chunk for a request of " +
                                             std::to_string(request_.type.bytes_max) + " bytes of service '" +
                                             request_.topic +
                                             "': " + (last_error() != nullptr ? last_error() : "all are in use"));
    discard(largest);
  }
  void listen(iox::popo::Listener& listener) override {
    require_attached(listener.attachEvent(*client_, iox::popo::ClientEvent::RESPONSE_RECEIVED,
                                          iox::popo::createNotificationCallback(on_reply, *this)),
                     receives_);
  }
  void stop_listening(iox::popo::Listener& listener) noexcept override {
    listener.detachEvent(*client_, iox::popo::ClientEvent::RESPONSE_RECEIVED);
  }
  bool join(iox::popo::WaitSet<>& waitset) override {
    return client_ && !waitset.attachState(*client_, iox::popo::ClientState::HAS_RESPONSE).has_error();
  }

  void* loan(uint32_t bytes) override {
    const std::scoped_lock lock(mutex_);
    auto chunk = client_->loan(bytes, alignment);
    return chunk.has_error() ? nullptr : chunk.value();
  }
  bool send(void* payload) noexcept override {
    const std::scoped_lock lock(mutex_);
    iox::popo::RequestHeader::fromPayload(payload)->setSequenceId(++requests_);
    return !client_->send(payload).has_error();
  }
  void discard(void* payload) noexcept override {
    const std::scoped_lock lock(mutex_);
    client_->releaseRequest(payload);
  }
  void answer(const void* /*request*/) override {
    throw Error(LAGOMETER_INVALID, "iceoryx: only a server's writer can answer");
  }
  const void* take() noexcept override {
    if (!client_) return nullptr;
    const std::scoped_lock lock(mutex_);
    const auto reply = client_->take();
    return reply.has_error() ? nullptr : reply.value();
  }
  void release(const void* payload) noexcept override {
    const std::scoped_lock lock(mutex_);
    client_->releaseResponse(payload);
  }
  [[nodiscard]] nlohmann::json describe() const override {
    return describe_queue("ClientOptions.responseQueueCapacity", options_.responseQueueCapacity,
                          iox::popo::ClientOptions().responseQueueCapacity);
  }
  [[nodiscard]] std::optional<uint32_t> counterparts() const noexcept override {
    return client_ && client_->getConnectionState() == iox::ConnectionState::CONNECTED ? 1 : 0;
  }

 private:
  static void on_reply(iox::popo::UntypedClient* /*unused*/, ClientEnd* self) noexcept { self->on_data(); }

  Endpoint request_;
  iox::popo::ClientOptions options_;
  std::optional<iox::popo::UntypedClient> client_;
  std::mutex mutex_;  // until the start, one thread sends probes and another takes
  int64_t requests_ = 0;
};

class ServerEnd final : public ServiceEnd {
 public:
  ServerEnd(Context& context, Endpoint request, const Endpoint& reply) : ServiceEnd(context, std::move(request)) {
    queue_of(reply, 0);  // the client has this queue
    options_.requestQueueCapacity = queue_of(receives_, options_.requestQueueCapacity);
    // If iceoryx's thread must see the very first request, it has to listen before there can be one.
    options_.offerOnCreate = receives_.dispatch != LAGOMETER_DISPATCH_LISTENER;
  }

  void open() override {
    if (!server_) server_.emplace(context_.service(receives_.type, receives_.topic), options_);
  }
  void listen(iox::popo::Listener& listener) override {
    require_attached(listener.attachEvent(*server_, iox::popo::ServerEvent::REQUEST_RECEIVED,
                                          iox::popo::createNotificationCallback(on_request, *this)),
                     receives_);
    server_->offer();
  }
  void stop_listening(iox::popo::Listener& listener) noexcept override {
    listener.detachEvent(*server_, iox::popo::ServerEvent::REQUEST_RECEIVED);
  }
  bool join(iox::popo::WaitSet<>& waitset) override {
    return server_ && !waitset.attachState(*server_, iox::popo::ServerState::HAS_REQUEST).has_error();
  }

  void* loan(uint32_t bytes) override {
    const void* const request = std::exchange(answers_, nullptr);
    if (request == nullptr)
      throw Error(LAGOMETER_INVALID, "iceoryx: a reply on '" + receives_.topic + "' without a request: call answer()");
    auto chunk = server_->loan(iox::popo::RequestHeader::fromPayload(request), bytes, alignment);
    return chunk.has_error() ? nullptr : chunk.value();
  }
  bool send(void* payload) noexcept override { return !server_->send(payload).has_error(); }
  void discard(void* payload) noexcept override { server_->releaseResponse(payload); }
  void answer(const void* request) override {
    const auto place = std::find(unanswered_.begin(), unanswered_.end(), request);
    if (place == unanswered_.end())
      throw Error(LAGOMETER_INVALID, "iceoryx: a request of '" + receives_.topic + "' is answered twice");
    *place = nullptr;
    answers_ = request;
  }
  const void* take() noexcept override {
    if (!server_) return nullptr;
    const auto request = server_->take();
    if (request.has_error()) return nullptr;
    const auto place = std::find(unanswered_.begin(), unanswered_.end(), nullptr);
    if (place == unanswered_.end()) {  // iceoryx gave more than its limit; without a place it could not be answered
      server_->releaseRequest(request.value());
      return nullptr;
    }
    *place = request.value();
    return request.value();
  }
  void release(const void* payload) noexcept override {
    std::replace(unanswered_.begin(), unanswered_.end(), payload, static_cast<const void*>(nullptr));
    server_->releaseRequest(payload);
  }
  [[nodiscard]] nlohmann::json describe() const override {
    return describe_queue("ServerOptions.requestQueueCapacity", options_.requestQueueCapacity,
                          iox::popo::ServerOptions().requestQueueCapacity);
  }
  /// iceoryx reports whether there are clients, not how many.
  [[nodiscard]] std::optional<uint32_t> counterparts() const noexcept override { return std::nullopt; }

 private:
  static void on_request(iox::popo::UntypedServer* /*unused*/, ServerEnd* self) noexcept { self->on_data(); }

  iox::popo::ServerOptions options_;
  std::optional<iox::popo::UntypedServer> server_;
  // One more than the maximum: iceoryx gives it before the oldest of the others is released (MAX_CHUNKS_IN_USE).
  std::array<const void*, iox::MAX_REQUESTS_PROCESSED_SIMULTANEOUSLY + 1> unanswered_{};
  const void* answers_ = nullptr;
};

}  // namespace

std::shared_ptr<ServiceEnd> make_client_end(Context& context, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply) {
  return std::make_shared<ClientEnd>(context, service_endpoint(request), service_endpoint(reply));
}

std::shared_ptr<ServiceEnd> make_server_end(Context& context, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply) {
  return std::make_shared<ServerEnd>(context, service_endpoint(request), service_endpoint(reply));
}

}  // namespace lagometer::iceoryx
