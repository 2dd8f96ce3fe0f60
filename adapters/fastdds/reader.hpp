// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <memory>
#include <string>

#include "context.hpp"
#include "lagometer/stamps.h"

namespace lagometer::fastdds {

class Reader final : private dds::DataReaderListener {
 public:
  static constexpr uint64_t kStampedLayers = LAGOMETER_STAMPS_TAKE | LAGOMETER_STAMPS_DESERIALISE;

  Reader(Node& node, const lagometer_endpoint_config& config);
  ~Reader() override;
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void enable();
  void ask_for_stamps(uint64_t layers) noexcept { stamped_layers_ = layers; }
  lagometer_status take(lagometer_sample* samples, uint32_t stride, uint32_t max, uint32_t& taken);
  void release(lagometer_sample* samples, uint32_t stride, uint32_t count);
  void matched(lagometer_matched& out);
  void counters(lagometer_counters& out);

  /// Whether a take() left data behind that no condition will report. Any thread.
  [[nodiscard]] bool has_left_over() const noexcept;
  [[nodiscard]] dds::DataReader& vendor_reader() const noexcept { return *reader_; }

 private:
  /// One take() in progress: the samples and their info, both loaned by the middleware.
  struct Loan {
    dds::LoanableSequence<uint8_t> samples;  // pointers to whatever the type creates
    dds::SampleInfoSeq infos;
    bool out = false;
  };
  void on_data_available(dds::DataReader* reader) override;
  void on_subscription_matched(dds::DataReader* reader, const dds::SubscriptionMatchedStatus& status) override;
  void on_requested_deadline_missed(dds::DataReader* reader, const dds::RequestedDeadlineMissedStatus& status) override;
  void on_requested_incompatible_qos(dds::DataReader* reader,
                                     const dds::RequestedIncompatibleQosStatus& status) override;
  void on_sample_lost(dds::DataReader* reader, const dds::SampleLostStatus& status) override;
  uint32_t take_once(lagometer_sample* samples, uint32_t stride, uint32_t begin, uint32_t most);
  uint32_t take_stamped(Loan& loan, lagometer_sample* samples, uint32_t stride, uint32_t begin, uint32_t most);
  bool take_into(Loan& loan, uint32_t most);
  uint32_t show_all(Loan& loan, lagometer_sample* samples, uint32_t stride, uint32_t begin);
  void drop_stale_sample();
  Loan& free_loan();
  void give_back(Loan& loan);
  void show(const Loan& loan, int32_t index, lagometer_sample& sample) const;

  Node& node_;
  std::string topic_;
  bool fixed_;
  uint64_t bytes_max_;
  uint64_t stamped_layers_ = 0;  // the requested ones
  void* user_;
  lagometer_data_function on_data_;
  lagometer_event_function on_event_;
  lagometer_policy_function on_policy_;
  std::array<Loan, 32> loans_;
  std::shared_ptr<void> scratch_;  // for reading stale samples; null if messages are too small to be fragmented
  std::atomic<bool> full_take_{false};
  dds::DataReader* reader_ = nullptr;  // the subscriber's
};

}  // namespace lagometer::fastdds
