// SPDX-License-Identifier: Apache-2.0
// The effective settings as XML profiles, to be pasted into a file named by FASTRTPS_DEFAULT_PROFILES_FILE.
#pragma once

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <string>

#include "library.hpp"
#include "settings.hpp"
#include "tcp_place.hpp"
#include "type.hpp"

namespace lagometer::fastdds {

/// `place`: over TCP; otherwise null.
std::string participant_profile(const Settings& settings, const TcpPlace* place);
/// Settings of the whole process, which are not in a profile.
std::string library_settings(IntraProcess intra_process);
std::string writer_profile(const dds::DataWriterQos& qos);
std::string reader_profile(const dds::DataReaderQos& qos);

}  // namespace lagometer::fastdds
