# SPDX-License-Identifier: Apache-2.0
"""Whether the system's clocks moved relative to each other while a trial ran.

NTP pulls CLOCK_REALTIME and CLOCK_MONOTONIC alike, so only a step changes their difference.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lagometer.store.observed import Clocks

ATTEMPTS = 5  # the narrowest counts: the others were interrupted
SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
OTHERS = {
    "wall": time.CLOCK_REALTIME,
    "boot": getattr(time, "CLOCK_BOOTTIME", None),
    "raw": getattr(time, "CLOCK_MONOTONIC_RAW", None),
}


@dataclass(frozen=True)
class Reading:
    """Each clock's distance from CLOCK_MONOTONIC, off by at most `uncertainty_ns`."""

    monotonic_ns: int
    offsets_ns: Mapping[str, int]
    uncertainty_ns: int
    source: str | None


def read_clocks() -> Reading:
    """Reads every clock between two readings of CLOCK_MONOTONIC."""
    offsets: dict[str, int] = {}
    uncertainty_ns = 0
    for name, clock in OTHERS.items():
        if clock is None:
            continue
        with contextlib.suppress(OSError):
            width_ns, offsets[name] = min(_offset(clock) for _ in range(ATTEMPTS))
            uncertainty_ns = max(uncertainty_ns, width_ns)
    source = None
    with contextlib.suppress(OSError):
        source = SOURCE.read_text().strip()
    return Reading(time.monotonic_ns(), offsets, uncertainty_ns, source)


def _offset(clock: int) -> tuple[int, int]:
    """Returns the width of the bracket, and the offset at its middle."""
    begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    other_ns = time.clock_gettime_ns(clock)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return end_ns - begin_ns, other_ns - (begin_ns + end_ns) // 2


def moved(before: Reading, after: Reading) -> Clocks:
    """Returns how far each clock moved relative to CLOCK_MONOTONIC between two readings."""

    def change(name: str) -> int | None:
        if name not in before.offsets_ns or name not in after.offsets_ns:
            return None
        return after.offsets_ns[name] - before.offsets_ns[name]

    return Clocks(
        elapsed_ns=after.monotonic_ns - before.monotonic_ns,
        wall_step_ns=change("wall"),
        suspended_ns=change("boot"),
        slewed_ns=change("raw"),
        uncertainty_ns=before.uncertainty_ns + after.uncertainty_ns,
        source_before=before.source,
        source_after=after.source,
    )
