// SPDX-License-Identifier: Apache-2.0
// One of several processes in a check: it carries out orders, one per line, and reports the results.
//
// An order is a JSON object with the key "do". The answer has "ok"; if that is false, also "reason", and for a refused
// call "call" and "status". Orders assign ids to objects.
//   load     library, runtime_directory
//   context  id, domain, profile, options, network
//   writer   id, context, stream, topic, type, bytes, qos
//   reader   id, context, topic, type, bytes, qos, dispatch, work_ns
//   probe    every writer looks for readers and sends a probe
//   send     writer, count, bytes, pace_ns, until_rejected -> accepted (sequences), rejected, longest_ns
//   flood    writer, bytes        sends until `calm` -> accepted, rejected
//   heard    sequences            -> readers: {id: what came}
//   stall    reader               nothing is taken from it until `resume`
//   matched, counters, describe   id
//   origin   writer, bytes        whose memory borrow() returns -> origin
//   destroy  id
//   reopen   rounds, dispatch, depth, blocking_ns -> before, after, late_callbacks
//   contract from, sidecar, options, depth   judges each line of the header's contract: own lines, then the answer
//   held                          -> descriptors, threads, files, printed_bytes
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "inbox.hpp"

namespace lagometer::conformance {

/// Writes one JSON object as a line on the program's own output.
void say(const nlohmann::json& message);

/// Descriptors, threads, files in shared memory, and the number of bytes printed on standard output.
nlohmann::json held_now();

class Peer {
 public:
  Peer() = default;
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  /// Carries out one order. Failures are also returned as answers.
  nlohmann::json answer(const nlohmann::json& order);

 private:
  using json = nlohmann::json;
  using Handler = json (Peer::*)(const json&);

  json load(const json& order);
  json make_context(const json& order);
  json make_writer(const json& order);
  json make_reader(const json& order);
  json probe(const json& order);
  json send(const json& order);
  json flood(const json& order);
  json calm(const json& order);
  json heard(const json& order);
  json stall(const json& order);
  json resume(const json& order);
  json matched(const json& order);
  json counters(const json& order);
  json describe(const json& order);
  json origin(const json& order);
  json destroy(const json& order);
  json reopen(const json& order);
  json contract(const json& order);
  json held(const json& order);

  template <typename Map>
  static auto& found(Map& map, const std::string& id) {
    const auto place = map.find(id);
    if (place == map.end()) throw std::runtime_error("no object '" + id + "'");
    return *place->second;
  }
  void close() noexcept;

  struct Flood {
    std::atomic<bool> ended{false};
    uint64_t accepted = 0;
    uint64_t rejected = 0;
    std::string failure;
    std::thread thread;
  };

  std::string runtime_directory_;
  std::unique_ptr<Adapter> adapter_;
  std::map<std::string, std::unique_ptr<Context>> contexts_;
  std::map<std::string, std::unique_ptr<Writer>> writers_;
  std::map<std::string, uint64_t> next_sequence_;
  std::map<std::string, std::unique_ptr<Inbox>> inboxes_;
  std::map<std::string, std::unique_ptr<Flood>> floods_;
  std::unique_ptr<Poller> poller_;
};

}  // namespace lagometer::conformance
