// SPDX-License-Identifier: Apache-2.0
// The settings in force as XML profiles, to be pasted into a file named by FASTRTPS_DEFAULT_PROFILES_FILE.
#pragma once

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <string>

#include "settings.hpp"
#include "type.hpp"

namespace lagometer::fastdds {

std::string participant_profile(const Settings& settings);
std::string writer_profile(const dds::DataWriterQos& qos);
std::string reader_profile(const dds::DataReaderQos& qos);

}  // namespace lagometer::fastdds
