// SPDX-License-Identifier: Apache-2.0
// Where faults are injected: between the engine's commit and the inner adapter's.
#pragma once

#include <vector>

#include "objects.hpp"

namespace lagometer::faulty {

class Writer {
 public:
  Writer(Node& node, const lagometer_endpoint_config& config);
  ~Writer() { table_.writer_destroy(inner_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void enable() { check_inner(table_.writer_enable(inner_)); }
  lagometer_status borrow(uint64_t bytes, lagometer_message& message) { return table_.borrow(inner_, bytes, &message); }
  lagometer_status commit(lagometer_message& message);
  void discard(lagometer_message& message) { table_.discard(inner_, &message); }
  void matched(lagometer_matched& out) const { check_inner(table_.writer_matched(inner_, &out)); }
  void counters(lagometer_counters& out) const { check_inner(table_.writer_counters(inner_, &out)); }
  [[nodiscard]] lagometer_writer* inner() const noexcept { return inner_; }
  [[nodiscard]] const lagometer_adapter_table& table() const noexcept { return table_; }
  [[nodiscard]] const Faults& faults() const noexcept { return faults_; }

 private:
  lagometer_status commit_data(lagometer_message& message, uint32_t stream, uint64_t sequence);
  lagometer_status drop(lagometer_message& message);
  lagometer_status hold(lagometer_message& message);
  void send_held();
  void send_stray(uint64_t sequence, uint32_t instance);
  void send(const std::vector<uint8_t>& payload, uint32_t instance);
  static void copy_out(const lagometer_message& message, std::vector<uint8_t>& payload);
  bool over_the_limit();

  const lagometer_adapter_table& table_;
  const Faults& faults_;
  lagometer_writer* inner_ = nullptr;
  std::vector<uint8_t> held_;  // the message that waits for the next one; allocated once, before `enable`
  std::vector<uint8_t> copy_;
  uint32_t held_instance_ = 0;
  bool holding_ = false;
  double tokens_ = 0.0;  // what limit_rate_hz still allows
  int64_t filled_ns_ = 0;
};

}  // namespace lagometer::faulty
