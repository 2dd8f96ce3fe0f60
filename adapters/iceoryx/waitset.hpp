// SPDX-License-Identifier: Apache-2.0
// iceoryx's wait set: one thread sleeps on a semaphore in shared memory until one of its subscribers has data.
#pragma once

#include <iceoryx_posh/popo/user_trigger.hpp>
#include <iceoryx_posh/popo/wait_set.hpp>
#include <vector>

#include "reader.hpp"

namespace lagometer::iceoryx {

class Waitset {
 public:
  explicit Waitset(Context& context);
  Waitset(const Waitset&) = delete;
  Waitset& operator=(const Waitset&) = delete;
  ~Waitset() = default;

  void attach(Reader& reader);
  lagometer_status wait(int64_t until_ns);
  void trigger() noexcept { trigger_.trigger(); }

 private:
  void attach_pending();

  std::vector<Reader*> pending_;  // attached, but not enabled yet
  iox::popo::WaitSet<> waitset_;
  iox::popo::UserTrigger trigger_;  // destroyed first: it detaches from the wait set
};

}  // namespace lagometer::iceoryx
