// SPDX-License-Identifier: Apache-2.0
// One connection to the broker. It is run by libmosquitto's own thread (mosquitto_loop_start), or by the thread that
// takes from it, through libmosquitto's calls for an application's own loop (mosquitto_socket, mosquitto_loop_read).
#pragma once

#include <mosquitto.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "callback_slots.hpp"
#include "settings.hpp"

namespace lagometer::mqtt {

/// A receiver of one topic's messages.
class Receiver {
 public:
  explicit Receiver(std::string topic) : topic_(std::move(topic)) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;
  virtual ~Receiver() = default;
  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }
  /// A message has arrived; it belongs to libmosquitto and is valid during this call. [thread: the one that runs the
  /// client]
  virtual void arrived(const mosquitto_message& message) noexcept = 0;

 private:
  std::string topic_;
};

class Client {
 public:
  enum class Run : uint8_t { by_library, by_caller };

  /// Connects; returns when the broker has accepted.
  Client(const Settings& settings, Run run);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// Returns when the broker has acknowledged the subscription. Pass the slot to unsubscribe().
  uint32_t subscribe(Receiver& receiver, int quality);
  /// Returns when the receiver no longer gets anything. [thread: any but the one that runs the client]
  void unsubscribe(const Receiver& receiver, uint32_t slot) noexcept;
  void publish(const std::string& topic, const uint8_t* data, uint64_t bytes, int quality);

  // For a client that its caller runs: what an application's loop does with it.
  [[nodiscard]] int socket() const noexcept { return mosquitto_socket(handle_.get()); }
  [[nodiscard]] bool wants_write() const noexcept { return mosquitto_want_write(handle_.get()); }
  void read();
  void write();

  /// Adds the socket's effective settings to those in an endpoint's description.
  void describe(nlohmann::json& settings) const;

 private:
  struct Destroy {
    void operator()(mosquitto* handle) const noexcept { mosquitto_destroy(handle); }
  };

  static void on_connect(mosquitto*, void* self, int code) noexcept;
  static void on_subscribe(mosquitto*, void* self, int message, int count, const int* granted) noexcept;
  static void on_message(mosquitto*, void* self, const mosquitto_message* message) noexcept;
  static void on_disconnect(mosquitto*, void* self, int code) noexcept;

  void set_callbacks() noexcept;
  void size_buffers();
  /// Waits until `happened` is true, and runs the client if nobody else does. The error text contains `what`.
  void await(const std::function<bool()>& happened, const std::string& what);
  void check(int code, const std::string& what) const;

  Run run_;
  Settings settings_;
  CallbackSlots<Receiver, 1024> receivers_;
  std::atomic<bool> closing_{false};
  std::mutex subscribing_;             // one at a time, also guards the counts below
  std::map<std::string, int> counts_;  // of receivers by topic
  std::mutex mutex_;                   // guards what follows: the broker's answers
  std::condition_variable answered_;
  std::optional<int> connected_;
  std::map<int, int> granted_;  // quality of service by message number of the request
  // The last member: if the constructor fails, its thread ends before the members that it uses.
  std::unique_ptr<mosquitto, Destroy> handle_;
};

}  // namespace lagometer::mqtt
