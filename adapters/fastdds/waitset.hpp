// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fastdds/dds/core/condition/GuardCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <span>
#include <vector>

#include "reader.hpp"

namespace lagometer::fastdds {

class Waitset {
 public:
  explicit Waitset(Context& context);

  void attach(Reader& reader);
  lagometer_status wait_ready(int64_t until_ns, std::span<uint32_t> places, uint32_t& count);
  void trigger();

 private:
  std::vector<Reader*> readers_;
  dds::ConditionSeq active_;  // kept, so that waiting does not allocate
  dds::GuardCondition triggered_;
  dds::WaitSet waitset_;  // the last member: it releases the conditions first
};

}  // namespace lagometer::fastdds
