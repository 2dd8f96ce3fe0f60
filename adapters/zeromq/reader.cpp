// SPDX-License-Identifier: Apache-2.0
#include "reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lagometer::zeromq {

Reader::Reader(Node& node, const lagometer_endpoint_config& config)
    : Reader(node, config, Kind::topic, nullptr, std::make_shared<Socket>(node.context.library(), ZMQ_SUB)) {
  configure();
  socket_->subscribe_to_all();
  description_ = socket_->describe();
}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, const std::shared_ptr<Line>& line)
    : Reader(node, config, kind, line, std::shared_ptr<Socket>(line, &line->socket)) {
  configure();
  endpoint_.topic = service_folder(endpoint_.topic);
  description_ = socket_->describe();
}

Reader::Reader(Node& node, const lagometer_endpoint_config& config, Kind kind, std::shared_ptr<Line> line,
               std::shared_ptr<Socket> socket)
    : context_(node.context),
      kind_(kind),
      endpoint_(Type::endpoint(config)),
      line_(std::move(line)),
      socket_(std::move(socket)) {}

void Reader::configure() {
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_LISTENER)
    throw Error(LAGOMETER_UNSUPPORTED, "zeromq: it calls nobody; ask for dispatch waitset or poll");
  const Choices& choices = context_.choices();
  const auto high_water_mark = choices.receive_hwm ? choices.receive_hwm : endpoint_.depth_asked;
  if (high_water_mark) socket_->set(ZMQ_RCVHWM, "ZMQ_RCVHWM", *high_water_mark);
  if (choices.socket_buffer_bytes && context_.meeting().transport() == "tcp")
    socket_->set(ZMQ_RCVBUF, "ZMQ_RCVBUF", *choices.socket_buffer_bytes);
}

Reader::~Reader() {
  announcement_.reset();
  if (!socket_file_.empty()) unlink(socket_file_.c_str());  // ZeroMQ leaves it behind
}

void Reader::enable() {
  if (kind_ == Kind::client) return;  // its writer looks for the server
  const std::string wanted = context_.meeting().new_address();
  if (zmq_bind(socket_->get(), wanted.c_str()) != 0) throw_zmq_error("listening at " + wanted);
  std::array<char, 256> address{};
  size_t bytes = address.size();
  if (zmq_getsockopt(socket_->get(), ZMQ_LAST_ENDPOINT, address.data(), &bytes) != 0)
    throw_zmq_error("asking for the address");
  constexpr std::string_view ipc = "ipc://";
  if (std::string_view(address.data()).starts_with(ipc)) socket_file_ = address.data() + ipc.size();
  announcement_ = context_.meeting().announce(endpoint_.topic, context_.meeting().facts(endpoint_, address.data()));
  context_.meeting().knock(endpoint_.topic);
}

void Reader::join_waitset() {
  if (endpoint_.dispatch == LAGOMETER_DISPATCH_WAITSET) return;
  throw Error(LAGOMETER_INVALID, "zeromq: a reader in a waitset has dispatch by waitset");
}

std::unique_lock<std::mutex> Reader::looking() const {
  if (kind_ != Kind::client) return {};
  std::unique_lock<std::mutex> lock(line_->mutex);
  line_->look();
  return lock;
}

/// Returns false if nothing has arrived yet. `more`: the second part of a message, which comes with the first.
bool Reader::receive(Message& into, bool more) {
  if (zmq_msg_recv(into.get(), socket_->get(), ZMQ_DONTWAIT) >= 0) return true;
  if (!more && (zmq_errno() == EAGAIN || zmq_errno() == EINTR)) return false;
  throw_zmq_error("receiving on '" + endpoint_.topic + "'");
}

lagometer_status Reader::take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken) {
  taken = 0;
  const auto place = std::find_if(places_.begin(), places_.end(), [](const Place& each) { return !each.held; });
  if (max == 0 || place == places_.end()) return LAGOMETER_OK;
  zmq_msg_t* const message = place->message.get();
  {
    const auto lock = looking();
    if (kind_ == Kind::server && !receive(place->sender, false)) return LAGOMETER_OK;
    if (!receive(place->message, kind_ == Kind::server)) return LAGOMETER_OK;
  }
  endpoint_.type.check(zmq_msg_size(message));
  lagometer_sample& sample = sample_at(samples, stride, 0);
  brokerless::show(sample, zmq_msg_data(message), zmq_msg_size(message), true);
  sample.adapter_data = &*place;
  place->held = true;
  taken = 1;
  return LAGOMETER_OK;
}

void Reader::release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept {
  for (uint32_t number = 0; number < count; ++number) {
    auto& place = *static_cast<Place*>(sample_at(samples, stride, number).adapter_data);
    place.message.clear();
    place.sender.clear();
    place.held = false;
  }
}

void Reader::matched(lagometer_matched& out) const noexcept {
  out.count = 0;
  out.exact = 2;  // a SUB socket does not know who publishes
}

}  // namespace lagometer::zeromq
