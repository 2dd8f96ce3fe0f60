// SPDX-License-Identifier: Apache-2.0
#include "service_ends.hpp"

#include <lagometer_interfaces/srv/bytes.hpp>
#include <optional>
#include <string>

namespace lagometer::ros2 {
namespace {

using Service = lagometer_interfaces::srv::Bytes;
using Request = Service::Request;
using Response = Service::Response;

/// Kept for the next call, and replaced if somebody still holds it.
template <typename Message>
using Pool = MessagePool<std::shared_ptr<Message>, std::shared_ptr<Message> (*)()>;
template <typename Message>
Pool<Message> make_pool() {
  return Pool<Message>([] { return std::make_shared<Message>(); });
}

template <typename Message>
Regions sized(Message& message, uint64_t bytes) {
  message.data.resize(bytes);
  return shown(message);
}

template <typename Message>
Arrived arrived_of(std::shared_ptr<const Message> message) {
  Arrived arrived;
  arrived.regions = shown(*message);
  arrived.message = std::move(message);
  return arrived;
}

/// Includes the sender, and the number that the client gave it.
Arrived arrived_of(std::shared_ptr<const Request> request, const rmw_request_id_t& id) {
  Arrived arrived = arrived_of<Request>(std::move(request));
  arrived.request = id;
  arrived.writer_id = writer_id_of(id.writer_guid);
  arrived.sequence = static_cast<uint64_t>(id.sequence_number);
  return arrived;
}

class ClientEnd final : public ServiceEnd, public std::enable_shared_from_this<ClientEnd> {
 public:
  ClientEnd(Endpoint endpoint, uint32_t dispatch) : endpoint_(std::move(endpoint)), dispatch_(dispatch) {}
  std::unique_ptr<Writer::Outlet> outlet() override;
  std::unique_ptr<Reader::Inlet> inlet() override;

  rclcpp::Client<Service>& client() {
    if (!client_) {
      client_ = endpoint_.node.ros_node().create_client<Service>(endpoint_.topic, endpoint_.qos(),
                                                                 endpoint_.node.group_for(dispatch_));
    }
    return *client_;
  }
  void join(Waitset& waitset) {
    client();
    waitset.add(client_);
  }
  void send(const std::shared_ptr<Request>& request) {
    if (dispatch_ != LAGOMETER_DISPATCH_LISTENER) {
      client().async_send_request(request);  // the taker of the reply does not use a future
      return;
    }
    client().async_send_request(request, [door = door](rclcpp::Client<Service>::SharedFuture future) {
      door->enter(arrived_of<Response>(future.get()));
    });
  }
  /// Whether the graph has the server; rclcpp does not say whether that one has seen the client.
  void matched(lagometer_matched& out) {
    out.count = client().service_is_ready() ? 1 : 0;
    out.exact = 0;
  }

 private:
  Endpoint endpoint_;
  uint32_t dispatch_;
  rclcpp::Client<Service>::SharedPtr client_;
};

class RequestOutlet final : public Writer::Outlet {
 public:
  explicit RequestOutlet(std::shared_ptr<ClientEnd> end) : end_(std::move(end)) {}
  Regions borrow(uint64_t bytes) override { return sized(*request_, bytes); }
  void publish() override { end_->send(request_); }
  void discard() override {}
  void matched(lagometer_matched& out) const override { end_->matched(out); }

 private:
  std::shared_ptr<ClientEnd> end_;
  std::shared_ptr<Request> request_ = std::make_shared<Request>();
};

class ReplyInlet final : public Reader::Inlet {
 public:
  explicit ReplyInlet(std::shared_ptr<ClientEnd> end) : end_(std::move(end)), pool_(make_pool<Response>()) {}
  bool take(Arrived& arrived) override {
    const auto id = std::make_shared<rmw_request_id_t>();
    const std::shared_ptr<Response>& response = pool_.next();
    if (!end_->client().take_response(*response, *id)) return false;
    end_->client().handle_response(id, response);  // the request is no longer in flight
    arrived = arrived_of<Response>(response);
    return true;
  }
  void join(Waitset& waitset) override { end_->join(waitset); }
  void matched(lagometer_matched& out) const override { end_->matched(out); }

 private:
  std::shared_ptr<ClientEnd> end_;
  Pool<Response> pool_;
};

std::unique_ptr<Writer::Outlet> ClientEnd::outlet() {
  client();
  return std::make_unique<RequestOutlet>(shared_from_this());
}
std::unique_ptr<Reader::Inlet> ClientEnd::inlet() {
  client();
  return std::make_unique<ReplyInlet>(shared_from_this());
}

/// rclcpp does not tell a server about its clients.
void matched_unknown(lagometer_matched& out) noexcept {
  out.count = 0;
  out.exact = 2;
}

class ServerEnd final : public ServiceEnd, public std::enable_shared_from_this<ServerEnd> {
 public:
  ServerEnd(Endpoint endpoint, uint32_t dispatch) : endpoint_(std::move(endpoint)), dispatch_(dispatch) {}
  std::unique_ptr<Writer::Outlet> outlet() override;
  std::unique_ptr<Reader::Inlet> inlet() override;

  rclcpp::Service<Service>& service() {
    if (!service_) {
      // The reply is sent within the callback, but not by returning from it.
      const auto callback = [door = door](std::shared_ptr<rmw_request_id_t> id, std::shared_ptr<Request> request) {
        door->enter(arrived_of(std::move(request), *id));
      };
      service_ = endpoint_.node.ros_node().create_service<Service>(endpoint_.topic, callback, endpoint_.qos(),
                                                                   endpoint_.node.group_for(dispatch_));
    }
    return *service_;
  }
  void join(Waitset& waitset) {
    service();
    waitset.add(service_);
  }

 private:
  Endpoint endpoint_;
  uint32_t dispatch_;
  rclcpp::Service<Service>::SharedPtr service_;
};

class ReplyOutlet final : public Writer::Outlet {
 public:
  explicit ReplyOutlet(std::shared_ptr<ServerEnd> end) : end_(std::move(end)) {}
  void answer(const rmw_request_id_t& request) override { request_ = request; }
  Regions borrow(uint64_t bytes) override { return sized(response_, bytes); }
  void publish() override {
    if (!request_) throw Error(LAGOMETER_INVALID, "ros2: a reply without a request: call answer()");
    end_->service().send_response(*request_, response_);
    request_.reset();
  }
  void discard() override { request_.reset(); }
  void matched(lagometer_matched& out) const override { matched_unknown(out); }

 private:
  std::shared_ptr<ServerEnd> end_;
  std::optional<rmw_request_id_t> request_;
  Response response_;
};

class RequestInlet final : public Reader::Inlet {
 public:
  explicit RequestInlet(std::shared_ptr<ServerEnd> end) : end_(std::move(end)), pool_(make_pool<Request>()) {}
  bool take(Arrived& arrived) override {
    rmw_request_id_t id;
    const std::shared_ptr<Request>& request = pool_.next();
    if (!end_->service().take_request(*request, id)) return false;
    arrived = arrived_of(request, id);
    return true;
  }
  void join(Waitset& waitset) override { end_->join(waitset); }
  void matched(lagometer_matched& out) const override { matched_unknown(out); }

 private:
  std::shared_ptr<ServerEnd> end_;
  Pool<Request> pool_;
};

std::unique_ptr<Writer::Outlet> ServerEnd::outlet() {
  service();
  return std::make_unique<ReplyOutlet>(shared_from_this());
}
std::unique_ptr<Reader::Inlet> ServerEnd::inlet() {
  service();
  return std::make_unique<RequestInlet>(shared_from_this());
}

/// What requests and replies have in common. Throws Error: settings that ROS 2 services do not have.
Endpoint service_endpoint(Node& node, const lagometer_endpoint_config& request,
                          const lagometer_endpoint_config& reply) {
  Endpoint endpoint(node, request);
  const Endpoint other(node, reply);
  check_service(endpoint.settings, endpoint.quality, other.quality, endpoint.topic);
  for (const std::string& type : {endpoint.type.name, other.type.name}) {
    if (type != "bytes")
      throw Error(LAGOMETER_UNSUPPORTED, "ros2: services support only the payload type bytes, not " + type);
  }
  return endpoint;
}

}  // namespace

Ends make_client(Node& node, const lagometer_endpoint_config& request, const lagometer_endpoint_config& reply) {
  const auto end = std::make_shared<ClientEnd>(service_endpoint(node, request, reply), reply.dispatch);
  return {std::make_unique<Writer>(node, request, end), std::make_unique<Reader>(node, reply, end)};
}

Ends make_server(Node& node, const lagometer_endpoint_config& request, const lagometer_endpoint_config& reply) {
  const auto end = std::make_shared<ServerEnd>(service_endpoint(node, request, reply), request.dispatch);
  return {std::make_unique<Writer>(node, reply, end), std::make_unique<Reader>(node, request, end)};
}

}  // namespace lagometer::ros2
