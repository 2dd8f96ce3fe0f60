// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lagometer::probes {

/// Whether a program that is not ours has created a publisher or a subscriber of roscpp in this process.
[[nodiscard]] bool has_roscpp() noexcept;

}  // namespace lagometer::probes
