// SPDX-License-Identifier: Apache-2.0
// The size of each struct in the first version of the ABI: for code that acts as an older host or adapter.
#pragma once

#include <cstddef>

#include "lagometer/adapter.h"

namespace lagometer::abi_host {

constexpr size_t size_1_0(const lagometer_host&) { return LAGOMETER_HOST_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_context_config&) { return LAGOMETER_CONTEXT_CONFIG_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_qos&) { return LAGOMETER_QOS_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_type_config&) { return LAGOMETER_TYPE_CONFIG_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_endpoint_config&) { return LAGOMETER_ENDPOINT_CONFIG_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_message&) { return LAGOMETER_MESSAGE_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_sample&) { return LAGOMETER_SAMPLE_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_matched&) { return LAGOMETER_MATCHED_SIZE_1_0; }
constexpr size_t size_1_0(const lagometer_counters&) { return LAGOMETER_COUNTERS_SIZE_1_0; }

}  // namespace lagometer::abi_host
