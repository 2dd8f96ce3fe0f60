// SPDX-License-Identifier: Apache-2.0
#include "library.hpp"

#include <fastrtps/attributes/PublisherAttributes.h>
#include <fastrtps/attributes/SubscriberAttributes.h>
#include <fastrtps/xmlparser/XMLParserCommon.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <mutex>
#include <optional>
#include <string>

namespace lagometer::fastdds {
namespace {

namespace dds = eprosima::fastdds::dds;
using eprosima::fastrtps::LibrarySettingsAttributes;
using eprosima::fastrtps::xmlparser::XMLProfileManager;

std::mutex mutex;
uint32_t users = 0;
IntraProcess in_force = IntraProcess::kFull;
std::optional<IntraProcess> from_file;  // the setting in the file of profiles, or the vendor's own

LibrarySettingsAttributes attributes(IntraProcess intra_process) {
  LibrarySettingsAttributes result;
  result.intraprocess_delivery = intra_process == IntraProcess::kFull ? eprosima::fastrtps::INTRAPROCESS_FULL
                                 : intra_process == IntraProcess::kOff
                                     ? eprosima::fastrtps::INTRAPROCESS_OFF
                                     : eprosima::fastrtps::INTRAPROCESS_USER_DATA_ONLY;
  return result;
}

IntraProcess intra_process(const LibrarySettingsAttributes& settings) {
  switch (settings.intraprocess_delivery) {
    case eprosima::fastrtps::INTRAPROCESS_OFF:
      return IntraProcess::kOff;
    case eprosima::fastrtps::INTRAPROCESS_USER_DATA_ONLY:
      return IntraProcess::kUserDataOnly;
    default:
      return IntraProcess::kFull;
  }
}

// The first participant would do so. The file's settings apply as long as the process runs.
void load_profiles(const std::string& file) {
  dds::DomainParticipantFactory::get_instance()->load_profiles();
  // The library only logs that a file is invalid, and continues without it.
  const bool read =
      file.empty() || XMLProfileManager::loadXMLFile(file) == eprosima::fastrtps::xmlparser::XMLP_ret::XML_OK;
  refuse(!read, std::string("the file ") + file + ", which " + kProfilesVariable +
                    " names, can't be read or is no valid file of profiles: see the lines of Fast DDS above; give an "
                    "absolute path");
  if (!from_file) from_file = intra_process(XMLProfileManager::library_settings());
}

}  // namespace

LibraryUse::LibraryUse(const Settings& settings) {
  const std::lock_guard lock(mutex);
  load_profiles(settings.profiles_file);
  const bool by_file = !settings.profiles_file.empty() && !settings.intra_process_asked;
  const IntraProcess wanted = by_file ? *from_file : settings.intra_process;
  if (users > 0 && wanted != in_force) {
    throw Error(LAGOMETER_INVALID, std::string("fastdds: option intra_process is one for the whole process, and a "
                                               "participant of this one has it at ") +
                                       name_of(in_force) + ": give all the same");
  }
  XMLProfileManager::library_settings(attributes(wanted));
  in_force = intra_process_ = wanted;
  ++users;
}

bool LibraryUse::profiles_change_something() {
  eprosima::fastrtps::PublisherAttributes writer;
  eprosima::fastrtps::SubscriberAttributes reader;
  XMLProfileManager::getDefaultPublisherAttributes(writer);
  XMLProfileManager::getDefaultSubscriberAttributes(reader);
  const std::lock_guard lock(mutex);
  return !(dds::DomainParticipantFactory::get_instance()->get_default_participant_qos() ==
           dds::DomainParticipantQos()) ||
         !(writer == eprosima::fastrtps::PublisherAttributes()) ||
         !(reader == eprosima::fastrtps::SubscriberAttributes()) || from_file != IntraProcess::kFull;
}

LibraryUse::~LibraryUse() {
  const std::lock_guard lock(mutex);
  if (--users == 0) dds::Log::KillThread();  // started by the log's first line, it would outlive the last participant
}

const char* name_of(IntraProcess intra_process) noexcept {
  if (intra_process == IntraProcess::kFull) return "FULL";
  return intra_process == IntraProcess::kOff ? "OFF" : "USER_DATA_ONLY";
}

}  // namespace lagometer::fastdds
