// SPDX-License-Identifier: Apache-2.0
// The peers that a participant has discovered, as reported to its own listener.
#pragma once

#include <chrono>
#include <condition_variable>
#include <fastdds/dds/domain/DomainParticipantListener.hpp>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace lagometer::fastdds {

namespace dds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

/// The text of a GUID's prefix, which names the participant.
std::string participant_of(const rtps::GUID_t& guid);

class Acquaintances : public dds::DomainParticipantListener {
 public:
  void on_participant_discovery(dds::DomainParticipant*, rtps::ParticipantDiscoveryInfo&& info) override;

#if HAVE_SECURITY
  void onParticipantAuthentication(dds::DomainParticipant*, rtps::ParticipantAuthenticationInfo&& info) override;
#endif

  /// How many peers were authenticated, and how many failed. [thread: any]
  [[nodiscard]] size_t authorised() const;
  [[nodiscard]] size_t unauthorised() const;

  /// The peers in the list that are not known.
  [[nodiscard]] std::vector<std::string> missing(const std::vector<std::string>& participants) const;
  /// Waits until a peer is discovered or gone, or this long.
  void await_change(std::chrono::milliseconds longest);
  void forget();

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> known_;
  std::set<std::string> authorised_;
  std::set<std::string> unauthorised_;
};

}  // namespace lagometer::fastdds
