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

/// Owns a DDS entity and deletes it with all that depends on it.
class Entity {
 public:
  Entity() = default;
  /// `what` says what was being made, in the error's text. Throws lagometer::Error if `entity` is an error code.
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
  /// The settings, and the buffers that the kernel gave where some were asked for.
  [[nodiscard]] nlohmann::json describe() const;

 private:
  /// How the participant protects its data: none, sign, encrypt, by its own quality of service and the plugins there.
  [[nodiscard]] std::string security() const;

  Settings settings_;
  OpenedSockets sockets_{SOCK_DGRAM};
  Entity domain_;  // outlives the participant: members are destroyed in the reverse order
  Entity participant_;
};

struct Node {
  Node(Context& given, std::string_view) : context(given) {}
  Context& context;
};

/// A payload type: lagometer's own, or a message of ROS 2. All are final, XCDR1.
class Type {
 public:
  static constexpr bool kTakesKeys = true;
  Type(Context& context, const lagometer_type_config& config);
  /// What a topic is called in DDS that lagometer calls `topic`.
  [[nodiscard]] std::string topic_name(std::string_view topic) const;
  [[nodiscard]] Entity create_topic(dds_entity_t participant, const std::string& name) const;
  [[nodiscard]] std::unique_ptr<Message> make_message() const;
  [[nodiscard]] bool is_fixed() const noexcept { return fixed_; }
  [[nodiscard]] bool is_keyed() const noexcept { return keyed_; }
  /// Of a type of fixed size.
  [[nodiscard]] uint64_t bytes() const noexcept { return max_bytes_; }
  /// Throws lagometer::Error if a message on this topic can't have so many bytes.
  void check(uint64_t bytes, const std::string& topic) const;

 private:
  std::optional<ros2::Message> message_;  // none: lagometer's own
  bool fixed_;
  bool keyed_;
  uint64_t max_bytes_;
  std::string name_;
  std::vector<uint32_t> operations_;  // of lagometer's own
};

class Endpoint {
 public:
  Endpoint(Node& node, const lagometer_endpoint_config& config);

 protected:
  /// Reports an event, if anybody asked. [thread: any of Cyclone DDS]
  void tell(uint32_t event, uint32_t total) const noexcept {
    if (on_event_ != nullptr) on_event_(user_, event, total);
  }
  /// The same of others that don't fit; `policy`: as DDS numbers it, which Cyclone DDS does, too.
  void tell_incompatible(uint32_t policy, uint32_t total) const noexcept {
    if (on_policy_ != nullptr) on_policy_(user_, policy);
    tell(LAGOMETER_EVENT_INCOMPATIBLE_QOS, total);
  }
  /// The quality of service in force, read back from the entity, where it differs from the default of the standard;
  /// with the option shared_memory also what carries its messages.
  [[nodiscard]] nlohmann::json describe_entity(dds_entity_t entity, bool reliable_by_default) const;
  dds_entity_t participant_;
  bool in_shared_memory_;  // wanted: whether this endpoint has it is up to its quality of service
  Type type_;              // its own, since who made it may let it go
  std::string topic_name_;
  Entity topic_;
  std::unique_ptr<dds_qos_t, void (*)(dds_qos_t*)> qos_;
  void* user_;
  lagometer_event_function on_event_;  // null: nobody asked for events
  lagometer_policy_function on_policy_;
};

using Listener = std::unique_ptr<dds_listener_t, void (*)(dds_listener_t*)>;

class Writer : Endpoint {
 public:
  // Serialising happens within write; only a sertype of the adapter's own could tell the two apart.
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_WRITE;

  Writer(Node& node, const lagometer_endpoint_config& config);
  void ask_for_stamps(uint64_t layers) noexcept { stamped_ = layers != 0; }
  void enable();
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message) noexcept;
  void matched(lagometer_matched& out) const;
  void counters(lagometer_counters& out) const;
  [[nodiscard]] nlohmann::json describe() const { return describe_entity(writer_.get(), true); }

 private:
  /// Tells what happens to the writer, or null if nobody asked.
  [[nodiscard]] Listener event_listener();
  void reshape(uint64_t bytes);
  dds_return_t write_stamped(lagometer_message& message);

  std::unique_ptr<Message> message_;  // what is sent, unless it is lent
  // Where a message of the size of the last one is written; sizes hardly ever change.
  uint64_t shaped_bytes_ = 0;
  uint32_t region_count_ = 0;
  lagometer_region regions_[LAGOMETER_REGIONS_MAX] = {};
  void* sample_ = nullptr;  // what the message borrowed is to the library
  Entity writer_;
  bool stamped_ = false;
  uint64_t id_ = 0;  // what readers find it by, with stamps
  dds_time_t last_source_time_ = 0;
  bool lends_ = false;  // messages lie in shared memory while they are written
};

class Reader : Endpoint {
 public:
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_TAKE;

  Reader(Node& node, const lagometer_endpoint_config& config);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  void ask_for_stamps(uint64_t layers) noexcept { stamped_ = layers != 0; }
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
  /// As the writer's.
  [[nodiscard]] Listener event_listener();
  void show(lagometer_sample& sample, uint32_t index) const noexcept;
  /// What a writer is known by in all processes, from what this reader calls it.
  uint64_t id_of(dds_instance_handle_t writer) noexcept;

  uint32_t dispatch_;
  lagometer_data_function on_data_;
  // Where Cyclone DDS puts what it deserialises: made once, used for every take.
  std::vector<std::unique_ptr<Message>> messages_;
  std::vector<void*> pointers_;
  std::vector<dds_sample_info_t> infos_;
  struct KnownWriter {
    dds_instance_handle_t handle;
    uint64_t id;
  };
  bool stamped_ = false;
  std::array<KnownWriter, 16> known_writers_{};
  size_t next_known_ = 0;
  bool in_place_ = false;        // samples are shown where they lie in shared memory, until they are released
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
  static constexpr dds_attach_t kGuard = 0;  // what the waitset knows a reader by is its place, from 1 on

  std::vector<const Reader*> readers_;
  size_t watched_ = 0;               // how many of them the waitset has: the others were not enabled yet
  std::vector<dds_attach_t> fired_;  // room for all, so that waiting allocates nothing
  Entity guard_;
  Entity waitset_;
};

}  // namespace lagometer::cyclonedds
