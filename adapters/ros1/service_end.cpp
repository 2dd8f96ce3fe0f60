// SPDX-License-Identifier: Apache-2.0
#include "service_end.hpp"

#include <ros/advertise_service_options.h>
#include <ros/service_client.h>
#include <ros/service_client_options.h>
#include <ros/service_server.h>

#include <atomic>
#include <boost/make_shared.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "messages.hpp"

namespace lagometer::ros1 {
namespace {

using Octets = ServiceBytes;
using OctetsPtr = boost::shared_ptr<Octets>;

OctetsPtr make_octets() { return boost::make_shared<Octets>(); }

int64_t wall_ns() { return static_cast<int64_t>(ros::Time::now().toNSec()); }

/// Errors: settings that services do not have.
Endpoint service_endpoint(Node& node, const lagometer_endpoint_config& config) {
  Endpoint endpoint(node, config);
  if (endpoint.type.fixed)
    throw Error(LAGOMETER_UNSUPPORTED, "ros1: services support only the payload type bytes (" + endpoint.topic + ")");
  return endpoint;
}

/// Delivers a message to a reader on its own thread, as roscpp does for topics.
class Delivery final : public ros::CallbackInterface {
 public:
  Delivery(Reader& reader, Arrived arrived) : reader_(reader), arrived_(std::move(arrived)) {}
  CallResult call() override {
    reader_.arrived(std::move(arrived_));
    return Success;
  }

 private:
  Reader& reader_;
  Arrived arrived_;
};

uint64_t owner_of(const Reader& reader) { return reinterpret_cast<uint64_t>(&reader); }

class ClientEnd final : public ServiceEnd, public std::enable_shared_from_this<ClientEnd> {
 public:
  ClientEnd(Endpoint request) : request_(std::move(request)), pool_(&make_octets) {}
  ~ClientEnd() override { close(); }

  std::unique_ptr<Writer::Outlet> outlet() override;
  void open(Reader& reader, const std::shared_ptr<Queue>& queue) override {
    reader_ = &reader;
    queue_ = queue;
    caller_ = std::thread([this] { make_calls(); });
  }
  void close() noexcept override {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
      client_.shutdown();  // ends a running call
    }
    asked_.notify_all();
    if (!caller_.joinable()) return;
    caller_.join();
    queue_->removeByID(owner_of(*reader_));  // waits for a running callback
  }
  void matched(lagometer_matched& out) const noexcept override {
    out.count = connected_.load(std::memory_order_relaxed) ? 1 : 0;
    out.exact = 0;
  }

  lagometer_region borrow(uint64_t bytes) { return resized(*pool_.next(), bytes); }
  /// Returns false if the maximum number of requests is already waiting.
  bool send() {
    {
      const std::scoped_lock lock(mutex_);
      const uint32_t room = request_.quality.queue_size;
      if (room != 0 && waiting_.size() >= room) return false;
      waiting_.push_back(pool_.current());
    }
    asked_.notify_one();
    return true;
  }

 private:
  void make_calls();
  /// A connected client, if there is a server. [thread: the caller]
  ros::ServiceClient connected_client();

  Endpoint request_;
  MessagePool<OctetsPtr, OctetsPtr (*)()> pool_;
  Reader* reader_ = nullptr;
  std::shared_ptr<Queue> queue_;
  std::thread caller_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::deque<OctetsPtr> waiting_;
  ros::ServiceClient client_;
  bool closing_ = false;
  std::atomic<bool> connected_{false};
};

ros::ServiceClient ClientEnd::connected_client() {
  if (client_.isValid()) return client_;
  ros::ServiceClientOptions options(request_.topic, ServiceBytes::md5sum, true, {});
  ros::ServiceClient made = request_.ros_node.serviceClient(options);
  const std::scoped_lock lock(mutex_);
  if (closing_) made.shutdown();
  client_ = made;
  connected_.store(made.isValid(), std::memory_order_relaxed);
  return made;
}

void ClientEnd::make_calls() {
  for (;;) {
    OctetsPtr request;
    {
      std::unique_lock lock(mutex_);
      asked_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      if (closing_) return;
      request = std::move(waiting_.front());
      waiting_.pop_front();
    }
    ros::ServiceClient client = connected_client();
    if (!client.isValid()) continue;  // no server: the request is dropped
    const OctetsPtr reply = make_octets();
    const bool answered = client.call(*request, *reply, ServiceBytes::md5sum);
    if (!client.isValid()) connected_.store(false, std::memory_order_relaxed);
    if (!answered) continue;
    Arrived arrived;
    arrived.bytes = shown(*reply);
    arrived.message = reply;
    arrived.receipt_ns = wall_ns();
    queue_->addCallback(boost::make_shared<Delivery>(*reader_, std::move(arrived)), owner_of(*reader_));
  }
}

class ClientOutlet final : public Writer::Outlet {
 public:
  explicit ClientOutlet(std::shared_ptr<ClientEnd> end) : end_(std::move(end)) {}
  lagometer_region borrow(uint64_t bytes) override { return end_->borrow(bytes); }
  bool publish() override { return end_->send(); }
  void matched(lagometer_matched& out) const override { end_->matched(out); }

 private:
  std::shared_ptr<ClientEnd> end_;
};

std::unique_ptr<Writer::Outlet> ClientEnd::outlet() { return std::make_unique<ClientOutlet>(shared_from_this()); }

class ServerEnd final : public ServiceEnd, public std::enable_shared_from_this<ServerEnd> {
 public:
  ServerEnd(Endpoint request, uint32_t dispatch)
      : request_(std::move(request)), calls_back_(dispatch == LAGOMETER_DISPATCH_LISTENER) {}
  ~ServerEnd() override { close(); }

  std::unique_ptr<Writer::Outlet> outlet() override;
  void open(Reader& reader, const std::shared_ptr<Queue>& queue) override;
  void close() noexcept override;
  void matched(lagometer_matched& out) const noexcept override {
    out.count = 0;
    out.exact = 2;
  }

 private:
  /// Returns whether there is a reply. [thread: the spinner's]
  bool serve(Octets& request, Octets& reply);

  Endpoint request_;
  bool calls_back_;  // the node's work runs in the callback; otherwise the callback waits for it
  Reader* reader_ = nullptr;
  std::shared_ptr<Queue> queue_;
  ros::CallbackQueue calls_;  // served by its own thread, which waits for replies
  std::unique_ptr<ros::AsyncSpinner> spinner_;
  ros::ServiceServer server_;
  std::mutex mutex_;
  std::shared_ptr<Exchange> under_way_;
  bool closing_ = false;
};

void ServerEnd::open(Reader& reader, const std::shared_ptr<Queue>& queue) {
  reader_ = &reader;
  queue_ = queue;
  const boost::function<bool(Octets&, Octets&)> callback = [this](Octets& request, Octets& reply) {
    return serve(request, reply);
  };
  ros::AdvertiseServiceOptions options;
  options.service = request_.topic;
  options.md5sum = ServiceBytes::md5sum;
  options.datatype = ServiceBytes::datatype;
  options.req_datatype = std::string(ServiceBytes::datatype) + "Request";
  options.res_datatype = std::string(ServiceBytes::datatype) + "Response";
  options.helper = boost::make_shared<ros::ServiceCallbackHelperT<ros::ServiceSpec<Octets, Octets>>>(callback);
  options.callback_queue = calls_back_ ? queue_.get() : &calls_;
  if (!calls_back_) {
    spinner_ = std::make_unique<ros::AsyncSpinner>(1, &calls_);
    spinner_->start();
  }
  server_ = request_.ros_node.advertiseService(options);
  if (!server_) throw Error(LAGOMETER_FAILED, "ros1: roscpp did not advertise service " + request_.topic);
}

void ServerEnd::close() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
    if (under_way_) under_way_->end(false);
  }
  server_.shutdown();  // waits for a running callback
  if (spinner_) {
    calls_.disable();
    spinner_->stop();
    spinner_.reset();
  }
  if (queue_) queue_->removeByID(owner_of(*reader_));
}

bool ServerEnd::serve(Octets& request, Octets& reply) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->request.data.swap(request.data);
  {
    const std::scoped_lock lock(mutex_);
    if (closing_) return false;
    under_way_ = exchange;
  }
  Arrived arrived;
  arrived.bytes = shown(exchange->request);
  arrived.exchange = exchange;
  arrived.receipt_ns = wall_ns();
  if (calls_back_) {
    reader_->arrived(std::move(arrived));
    exchange->end(false);  // a request not answered inside the callback never will be
  } else {
    queue_->addCallback(boost::make_shared<Delivery>(*reader_, std::move(arrived)), owner_of(*reader_));
  }
  const bool answered = exchange->wait();
  {
    const std::scoped_lock lock(mutex_);
    under_way_.reset();
  }
  reply.data.swap(exchange->reply.data);
  return answered;
}

class ServerOutlet final : public Writer::Outlet {
 public:
  ServerOutlet(std::shared_ptr<ServerEnd> end, std::string service)
      : end_(std::move(end)), service_(std::move(service)) {}
  lagometer_region borrow(uint64_t bytes) override {
    if (!exchange_) throw Error(LAGOMETER_INVALID, "ros1: a reply on " + service_ + " without a request");
    return resized(exchange_->reply, bytes);
  }
  /// Returns false if roscpp's callback has returned without it.
  bool publish() override { return std::exchange(exchange_, nullptr)->end(true); }
  void matched(lagometer_matched& out) const override { end_->matched(out); }
  void answer(const Arrived& request) override {
    if (!request.exchange || !request.exchange->answer())
      throw Error(LAGOMETER_INVALID, "ros1: a request of " + service_ + " is answered twice");
    exchange_ = request.exchange;
  }

 private:
  std::shared_ptr<ServerEnd> end_;
  std::string service_;
  std::shared_ptr<Exchange> exchange_;
};

std::unique_ptr<Writer::Outlet> ServerEnd::outlet() {
  return std::make_unique<ServerOutlet>(shared_from_this(), request_.topic);
}

}  // namespace

std::shared_ptr<ServiceEnd> make_client_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply) {
  service_endpoint(node, reply);
  return std::make_shared<ClientEnd>(service_endpoint(node, request));
}

std::shared_ptr<ServiceEnd> make_server_end(Node& node, const lagometer_endpoint_config& request,
                                            const lagometer_endpoint_config& reply) {
  service_endpoint(node, reply);
  return std::make_shared<ServerEnd>(service_endpoint(node, request), request.dispatch);
}

}  // namespace lagometer::ros1
