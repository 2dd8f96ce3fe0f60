// SPDX-License-Identifier: Apache-2.0
// The wrapped adapter: its library, opened once for each context, and its failures in its own words.
#pragma once

#include <string>

#include "binding.hpp"

namespace lagometer::faulty {

/// The table of the adapter `over`. `library` is its file; if empty, it is searched next to this library's folder and
/// in LAGOMETER_ADAPTER_PATH. Throws Error that lists the searched places.
const lagometer_adapter_table& open_inner(const std::string& over, const std::string& library);

/// What the inner adapter last gave to host->fail on this thread; a fixed sentence if it gave nothing.
std::string inner_failure();

/// Throws Error with the inner adapter's error text if `status` is negative.
void check_inner(lagometer_status status);

}  // namespace lagometer::faulty
