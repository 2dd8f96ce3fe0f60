// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <memory>
#include <string>

#include "context.hpp"
#include "lagometer/stamps.h"

namespace lagometer::fastdds {

class Writer final : private dds::DataWriterListener {
 public:
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_SERIALISE | LAGOMETER_STAMPS_WRITE;

  Writer(Node& node, const lagometer_endpoint_config& config);
  ~Writer() override;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void enable();
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  lagometer_status borrow(uint64_t bytes, lagometer_message& message);
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message);
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out);

  [[nodiscard]] const Context& context() const noexcept { return node_.context(); }
  [[nodiscard]] const Settings& settings() const noexcept { return node_.context().settings(); }
  [[nodiscard]] const dds::DataWriter& vendor_writer() const noexcept { return *writer_; }
  /// Whether its payloads are in shared memory that readers also map.
  [[nodiscard]] bool shares_data() const noexcept { return shares_data_; }

 private:
  void on_publication_matched(dds::DataWriter* writer, const dds::PublicationMatchedStatus& status) override;
  void on_offered_deadline_missed(dds::DataWriter* writer, const dds::OfferedDeadlineMissedStatus& status) override;
  void on_offered_incompatible_qos(dds::DataWriter* writer, const dds::OfferedIncompatibleQosStatus& status) override;
  void reshape(uint64_t bytes);
  lagometer_status publish(void* sample, lagometer_message& message);
  lagometer_status publish_stamped(void* sample, lagometer_message& message);
  [[nodiscard]] uint32_t origin_of_loan() const noexcept;

  Node& node_;
  Type type_;  // its own copy, because its creator may destroy the original
  std::string topic_;
  bool fixed_;
  bool keyed_;
  uint64_t stamped_layers_ = 0;  // the requested ones
  void* user_;
  lagometer_event_function on_event_;
  lagometer_policy_function on_policy_;
  std::unique_ptr<Message> message_;  // any type but Fixed: the message that is sent, which borrow() returns
  // Where to write a message with the size of the last one; sizes hardly ever change.
  uint64_t shaped_bytes_ = 0;
  uint32_t region_count_ = 0;
  lagometer_region regions_[LAGOMETER_REGIONS_MAX] = {};
  void* loan_ = nullptr;                     // type Fixed: the middleware's memory that borrow() returns
  bool shares_data_ = false;                 // known once it is enabled
  std::atomic<int32_t> near_readers_{0};     // in this process
  std::atomic<int32_t> far_readers_{0};      // in other processes
  std::atomic<int32_t> foreign_readers_{0};  // of other vendors
  std::atomic<uint64_t> rejected_{0};
  dds::DataWriter* writer_ = nullptr;  // the publisher's
};

}  // namespace lagometer::fastdds
