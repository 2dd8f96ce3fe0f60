// SPDX-License-Identifier: Apache-2.0
// libmosquitto as the objects of adapter.h. Publishers and listeners of a context share one client, which
// libmosquitto's thread runs; a reader with another dispatch has its own client, which the node's thread runs.
#pragma once

#include <poll.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "aligned_buffer.hpp"
#include "client.hpp"
#include "descriptor.hpp"

namespace lagometer::mqtt {

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() noexcept {}
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The client that libmosquitto's thread runs; the first call connects it.
  Client& shared_client();

 private:
  Settings settings_;
  std::mutex mutex_;
  std::unique_ptr<Client> client_;
};

using Node = PlainNode<Context>;
using Type = floor::Type<Context, abilities>;

class Writer : public Plain {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  void enable() { client_ = &context_.shared_client(); }
  lagometer_status borrow(uint64_t bytes, lagometer_message& message) const;
  lagometer_status commit(const lagometer_message& message);
  [[nodiscard]] std::string describe() const;

 private:
  Context& context_;
  floor::Endpoint endpoint_;
  int quality_;
  sockets::AlignedBuffer buffer_;
  Client* client_ = nullptr;
};

/// Messages that arrived and were not taken yet, in order.
class Inbox {
 public:
  struct Slot {
    sockets::AlignedBuffer buffer;
    uint64_t bytes = 0;
    Slot* next = nullptr;
  };

  explicit Inbox(uint64_t bytes_max);
  void push(const mosquitto_message& message);
  /// The oldest; null if there is none. It does not change until give_back().
  Slot* pop() noexcept;
  void give_back(Slot* slot) noexcept;
  [[nodiscard]] bool empty() noexcept;

 private:
  void grow();

  uint64_t bytes_max_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  Slot* free_ = nullptr;
  Slot* first_ = nullptr;
  Slot* last_ = nullptr;
};

class Reader final : public Receiver, public Plain {
 public:
  Reader(Node& node, const lagometer_endpoint_config& config);
  ~Reader() override;
  void enable();
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  [[nodiscard]] std::string describe() const;
  void arrived(const mosquitto_message& message) noexcept override;

  // For the waitset.
  [[nodiscard]] bool waits() const noexcept { return endpoint_.dispatch == LAGOMETER_DISPATCH_WAITSET; }
  [[nodiscard]] bool has_message() noexcept { return !inbox_.empty(); }
  [[nodiscard]] Client* own_client() const noexcept { return own_.get(); }

 private:
  void announce(const mosquitto_message& message);

  Context& context_;
  floor::Endpoint endpoint_;
  int quality_;
  Inbox inbox_;
  std::unique_ptr<Client> own_;
  Client* client_ = nullptr;
  uint32_t slot_ = 0;
  const mosquitto_message* offered_ = nullptr;  // in the listener: its message; that thread only
};

/// One thread waits here for its readers' sockets.
class Waitset {
 public:
  explicit Waitset(Context&);
  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns);
  void trigger() noexcept;

 private:
  [[nodiscard]] bool poll_once(int64_t until_ns);

  Descriptor trigger_;
  std::vector<Reader*> readers_;
  std::vector<pollfd> events_;
};

}  // namespace lagometer::mqtt
