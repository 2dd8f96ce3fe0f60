// SPDX-License-Identifier: Apache-2.0
#include "acquaintances.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace lagometer::fastdds {

std::string participant_of(const rtps::GUID_t& guid) {
  std::ostringstream text;
  text << guid.guidPrefix;
  return text.str();
}

void Acquaintances::on_participant_discovery(dds::DomainParticipant*, rtps::ParticipantDiscoveryInfo&& info) {
  using Status = rtps::ParticipantDiscoveryInfo::DISCOVERY_STATUS;
  const bool gone = info.status == Status::REMOVED_PARTICIPANT || info.status == Status::DROPPED_PARTICIPANT;
  const std::string participant = participant_of(info.info.m_guid);
  const std::lock_guard lock(mutex_);
  if (gone) {
    known_.erase(participant);
  } else {
    known_.insert(participant);
  }
  changed_.notify_all();
}

#if HAVE_SECURITY
void Acquaintances::onParticipantAuthentication(dds::DomainParticipant*, rtps::ParticipantAuthenticationInfo&& info) {
  const bool passed = info.status == rtps::ParticipantAuthenticationInfo::AUTHORIZED_PARTICIPANT;
  const std::lock_guard lock(mutex_);
  (passed ? authorised_ : unauthorised_).insert(participant_of(info.guid));
}
#endif

size_t Acquaintances::authorised() const {
  const std::lock_guard lock(mutex_);
  return authorised_.size();
}

size_t Acquaintances::unauthorised() const {
  const std::lock_guard lock(mutex_);
  return unauthorised_.size();
}

std::vector<std::string> Acquaintances::missing(const std::vector<std::string>& participants) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> result;
  std::copy_if(participants.begin(), participants.end(), std::back_inserter(result),
               [this](const std::string& each) { return !known_.contains(each); });
  return result;
}

void Acquaintances::await_change(std::chrono::milliseconds longest) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest);
}

void Acquaintances::forget() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

}  // namespace lagometer::fastdds
