// SPDX-License-Identifier: Apache-2.0
// From lagometer's QoS to Fast DDS's. What is not asked for stays as the vendor ships it.
#pragma once

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>

#include "settings.hpp"
#include "type.hpp"

namespace lagometer::fastdds {

/// `initial`: what the file of profiles says, or else the vendor's. Throws Error(LAGOMETER_INVALID or
/// LAGOMETER_UNSUPPORTED) that names the policy.
dds::DataWriterQos writer_qos(const dds::DataWriterQos& initial, const lagometer_qos* qos, const Settings& settings,
                              const Type& type);
dds::DataReaderQos reader_qos(dds::DataReaderQos initial, const lagometer_qos* qos, const Settings& settings,
                              const Type& type);

}  // namespace lagometer::fastdds
