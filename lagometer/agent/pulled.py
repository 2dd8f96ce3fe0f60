# SPDX-License-Identifier: Apache-2.0
"""How fast a time service pulls CLOCK_MONOTONIC, against CLOCK_MONOTONIC_RAW, which nobody pulls.

From the beginning to the end of a trial a pull may cancel itself: forwards for a second, and back. So it is
looked at often, and the fastest counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

APART_NS = 50_000_000  # two looks closer than this would show what their readings are off by
ATTEMPTS = 3  # per look; the narrowest counts: the others were interrupted
PER_MILLION = 1e6


@dataclass(frozen=True)
class Distance:
    """At `at_ns` on CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW was ahead by this, give or take `width_ns`."""

    width_ns: int
    at_ns: int
    ahead_ns: int


class PullWatch:
    """Looks at both clocks now and then. most_ppm: the fastest pull so far; 0 if none can be told."""

    def __init__(self, read: Callable[[], Distance | None] | None = None) -> None:
        self._read = read or distance
        self._last: Distance | None = None
        self.most_ppm = 0.0

    def look(self) -> None:
        """Compares with the last look, unless that was a moment ago."""
        last = self._last
        if last is not None and time.monotonic_ns() - last.at_ns < APART_NS:
            return
        now = self._read()
        if now is None:
            return
        self._last = now
        if last is None or now.at_ns <= last.at_ns:
            return
        moved_ns, off_ns = abs(now.ahead_ns - last.ahead_ns), now.width_ns + last.width_ns
        if moved_ns > off_ns:
            pull = (moved_ns + off_ns) / (now.at_ns - last.at_ns)
            self.most_ppm = max(self.most_ppm, PER_MILLION * pull)


def distance() -> Distance | None:
    """Returns how far the two clocks are apart now; None if the system has no such clock."""
    raw = getattr(time, "CLOCK_MONOTONIC_RAW", None)
    if raw is None:
        return None
    try:
        return min((_read(raw) for _ in range(ATTEMPTS)), key=lambda each: each.width_ns)
    except OSError:
        return None


def _read(raw: int) -> Distance:
    begin_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    raw_ns = time.clock_gettime_ns(raw)
    end_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    middle_ns = (begin_ns + end_ns) // 2
    return Distance(end_ns - begin_ns, middle_ns, raw_ns - middle_ns)
