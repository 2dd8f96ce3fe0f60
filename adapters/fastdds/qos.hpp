// SPDX-License-Identifier: Apache-2.0
// Converts lagometer's QoS to Fast DDS's. Policies that are not requested stay at the vendor's default.
#pragma once

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>

#include "settings.hpp"
#include "type.hpp"

namespace lagometer::fastdds {

/// `initial`: the file of profiles' QoS, otherwise the vendor's. Throws Error(LAGOMETER_INVALID or
/// LAGOMETER_UNSUPPORTED) that names the policy.
dds::DataWriterQos writer_qos(const dds::DataWriterQos& initial, const lagometer_qos* qos, const Settings& settings,
                              const Type& type);
dds::DataReaderQos reader_qos(dds::DataReaderQos initial, const lagometer_qos* qos, const Settings& settings,
                              const Type& type);

}  // namespace lagometer::fastdds
