// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <mutex>
#include <string>

namespace lagometer::fastdds {
namespace {

namespace dds = eprosima::fastdds::dds;
using eprosima::fastrtps::LibrarySettingsAttributes;
using eprosima::fastrtps::xmlparser::XMLProfileManager;

std::mutex mutex;
uint32_t users = 0;
IntraProcess in_force = IntraProcess::kFull;

LibrarySettingsAttributes attributes(IntraProcess intra_process) {
  LibrarySettingsAttributes result;
  result.intraprocess_delivery = intra_process == IntraProcess::kFull ? eprosima::fastrtps::INTRAPROCESS_FULL
                                 : intra_process == IntraProcess::kOff
                                     ? eprosima::fastrtps::INTRAPROCESS_OFF
                                     : eprosima::fastrtps::INTRAPROCESS_USER_DATA_ONLY;
  return result;
}

}  // namespace

LibraryUse::LibraryUse(IntraProcess wanted) {
  const std::lock_guard lock(mutex);
  if (users > 0 && wanted != in_force) {
    throw Error(LAGOMETER_INVALID, std::string("fastdds: option intra_process is one for the whole process, and a "
                                               "participant of this one has it at ") +
                                       name_of(in_force) + ": give all the same");
  }
  // The first participant would load the XML file that the environment names, and its library_settings with it.
  dds::DomainParticipantFactory::get_instance()->load_profiles();
  XMLProfileManager::library_settings(attributes(wanted));
  in_force = wanted;
  ++users;
}

LibraryUse::~LibraryUse() {
  const std::lock_guard lock(mutex);
  if (--users == 0) dds::Log::KillThread();  // made at the log's first line, it would outlive the last participant
}

const char* name_of(IntraProcess intra_process) noexcept {
  if (intra_process == IntraProcess::kFull) return "FULL";
  return intra_process == IntraProcess::kOff ? "OFF" : "USER_DATA_ONLY";
}

}  // namespace lagometer::fastdds
