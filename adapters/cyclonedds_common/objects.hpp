// SPDX-License-Identifier: Apache-2.0
// Cyclone DDS (C API) as the objects of adapter.h.
#pragma once

#include <dds/dds.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "binding.hpp"
#include "dds_security.hpp"
#include "layer_stamps.hpp"
#include "messages.hpp"
#include "opened_sockets.hpp"
#include "series.hpp"
#include "settings.hpp"

namespace lagometer::cyclonedds {

/// Owns a DDS entity and deletes it with everything that depends on it.
class Entity {
 public:
  Entity() = default;
  /// `what` names what was being created, for the error's text. Throws lagometer::Error if `entity` is an error code.
  Entity(dds_entity_t entity, const std::string& what);
  ~Entity();
  Entity(Entity&& other) noexcept;
  Entity& operator=(Entity&& other) noexcept;
  [[nodiscard]] dds_entity_t get() const noexcept { return entity_; }

 private:
  dds_entity_t entity_ = 0;
};

/// Throws lagometer::Error if a call failed.
void check(dds_return_t status, const std::string& what);

class Context {
 public:
  explicit Context(const lagometer_context_config& config);
  void enable() {}
  [[nodiscard]] dds_entity_t participant() const noexcept { return participant_.get(); }
  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  /// The settings, and the buffers that the kernel granted if some were requested.
  [[nodiscard]] nlohmann::json describe() const;

 private:
  /// How the participant protects its data: none, sign, encrypt, according to its quality of service and the loaded
  /// plugins.
  [[nodiscard]] std::string security() const;

  Settings settings_;
  OpenedSockets sockets_{SOCK_DGRAM};
  Entity domain_;  // outlives the participant: members are destroyed in reverse order
  Entity participant_;
};

struct Node {
  Node(Context& given, std::string_view) : context(given) {}
  Context& context;
};

/// A payload type: lagometer's own, or a ROS 2 message. All are final, XCDR1.
class Type {
 public:
  static constexpr bool kTakesKeys = true;
  Type(Context& context, const lagometer_type_config& config);
  /// The DDS name of lagometer's topic `topic`.
  [[nodiscard]] std::string topic_name(std::string_view topic) const;
  [[nodiscard]] Entity create_topic(dds_entity_t participant, const std::string& name) const;
  [[nodiscard]] std::unique_ptr<Message> make_message() const;
  [[nodiscard]] bool is_fixed() const noexcept { return fixed_; }
  [[nodiscard]] bool is_keyed() const noexcept { return keyed_; }
  /// For a type of fixed size.
  [[nodiscard]] uint64_t bytes() const noexcept { return max_bytes_; }
  /// Throws lagometer::Error if a message on this topic can't have this many bytes.
  void check(uint64_t bytes, const std::string& topic) const;

 private:
  std::optional<ros2::Message> message_;  // nothing: lagometer's own
  bool fixed_;
  bool keyed_;
  uint64_t max_bytes_;
  std::string name_;
  std::vector<uint32_t> operations_;  // for lagometer's own types
};

class Endpoint {
 public:
  Endpoint(Node& node, const lagometer_endpoint_config& config);

 protected:
  /// Reports an event, if requested. [thread: any of Cyclone DDS]
  void tell(uint32_t event, uint32_t total) const noexcept {
    if (on_event_ != nullptr) on_event_(user_, event, total);
  }
  /// The same for incompatible endpoints; `policy`: as numbered by DDS and by Cyclone DDS.
  void tell_incompatible(uint32_t policy, uint32_t total) const noexcept {
    if (on_policy_ != nullptr) on_policy_(user_, policy);
    tell(LAGOMETER_EVENT_INCOMPATIBLE_QOS, total);
  }
  /// The effective quality of service, read back from the entity, where it differs from the standard's default; with
  /// the option shared_memory also what carries its messages.
  [[nodiscard]] nlohmann::json describe_entity(dds_entity_t entity, bool reliable_by_default) const;
  dds_entity_t participant_;
  bool in_shared_memory_;  // requested: whether this endpoint uses it depends on its quality of service
  Type type_;              // its own copy, because its creator may destroy the original
  std::string topic_name_;
  Entity topic_;
  std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> qos_;
  void* user_;
  lagometer_event_function on_event_;  // null: events were not requested
  lagometer_policy_function on_policy_;
};

using Listener = std::unique_ptr<dds_listener_t, void (*)(dds_listener_t*)>;

class Writer : Endpoint {
 public:
  static constexpr uint64_t kStampedLayers =
      LAGOMETER_STAMPS_WRITE | (notes_serialising ? LAGOMETER_STAMPS_SERIALISE : 0);

  Writer(Node& node, const lagometer_endpoint_config& config);
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  void enable();
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const { return describe_entity(writer_.get(), true); }

 private:
  /// Reports the writer's events; null if they were not requested.
  [[nodiscard]] Listener event_listener();
  void reshape(uint64_t bytes);
  dds_return_t write_stamped(lagometer_message& message);

  std::unique_ptr<Message> message_;  // the message to be sent, unless it is loaned
  // Where to write a message with the size of the last one; sizes hardly ever change.
  uint64_t shaped_bytes_ = 0;
  uint32_t region_count_ = 0;
  lagometer_region regions_[LAGOMETER_REGIONS_MAX] = {};
  void* sample_ = nullptr;  // the borrowed message as the library knows it
  Entity writer_;
  uint64_t stamped_layers_ = 0;
  uint64_t id_ = 0;  // identifies it to readers, with stamps
  dds_time_t last_source_time_ = 0;
  bool lends_ = false;  // messages are in shared memory while they are written
};

class Reader : Endpoint {
 public:
  static constexpr uint64_t kStampedLayers =
      LAGOMETER_STAMPS_TAKE | (notes_serialising ? LAGOMETER_STAMPS_DESERIALISE : 0);

  Reader(Node& node, const lagometer_endpoint_config& config);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  void enable();
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const { return describe_entity(reader_.get(), false); }
  [[nodiscard]] dds_entity_t condition() const noexcept { return condition_.get(); }

 private:
  static constexpr uint32_t kBatch = 8;
  static void on_data(dds_entity_t reader, void* self) noexcept;
  /// Like the writer's.
  [[nodiscard]] Listener event_listener();
  void show(lagometer_sample& sample, uint32_t index) const noexcept;
  /// A writer's number in all processes, from this reader's handle for it.
  uint64_t id_of(dds_instance_handle_t writer) noexcept;

  uint32_t dispatch_;
  lagometer_data_function on_data_;
  // Where Cyclone DDS puts deserialised messages: created once, used for every take.
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<void*> pointers_;
  std::vector<dds_sample_info_t> infos_;
  struct KnownWriter {
    dds_instance_handle_t handle;
    uint64_t id;
  };
  uint64_t stamped_layers_ = 0;
  std::array<KnownWriter, 16> known_writers_{};
  size_t next_known_ = 0;
  bool in_place_ = false;        // samples stay in shared memory until they are released
  std::shared_ptr<void> place_;  // outlives the reader
  Entity reader_;
  Entity condition_;
};

class Waitset {
 public:
  explicit Waitset(Context& context);
  void attach(const Reader& reader);
  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count);
  void trigger() noexcept;

 private:
  static constexpr dds_attach_t kGuard = 0;  // readers are identified by their position, from 1

  std::vector<const Reader*> readers_;
  size_t watched_ = 0;               // how many of them the waitset has: the others are not enabled yet
  std::vector<dds_attach_t> fired_;  // room for all, so that waiting does not allocate
  Entity guard_;
  Entity waitset_;
};

}  // namespace lagometer::cyclonedds
