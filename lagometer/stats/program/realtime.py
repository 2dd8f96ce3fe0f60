# SPDX-License-Identifier: Apache-2.0
"""From the clock by which a middleware stamps messages to the one by which probes stamp calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClockPair:
    """CLOCK_REALTIME and CLOCK_MONOTONIC at one moment. error_ns: by how much they may be apart from that."""

    monotonic_ns: int
    realtime_ns: int
    error_ns: int

    @property
    def offset_ns(self) -> int:
        """What CLOCK_REALTIME is ahead."""
        return self.realtime_ns - self.monotonic_ns


@dataclass(frozen=True)
class RealtimeClock:
    """CLOCK_REALTIME between two moments at which both clocks were read."""

    begin: ClockPair
    end: ClockPair

    @property
    def drift_ns(self) -> int:
        """By how much CLOCK_REALTIME went ahead of CLOCK_MONOTONIC meanwhile: it was slewed, or set."""
        return self.end.offset_ns - self.begin.offset_ns

    @property
    def error_ns(self) -> int:
        """By how much a time that was translated may be wrong, if the clock was slewed evenly."""
        return max(self.begin.error_ns, self.end.error_ns)

    def to_monotonic(self, realtime_ns: Times) -> Times:
        """Times of CLOCK_REALTIME on CLOCK_MONOTONIC."""
        whole_ns = max(1, self.end.realtime_ns - self.begin.realtime_ns)
        since_ns = realtime_ns - self.begin.realtime_ns
        ahead_ns = np.rint(since_ns * (self.drift_ns / whole_ns)).astype(np.int64)
        monotonic_ns: Times = realtime_ns - self.begin.offset_ns - ahead_ns
        return monotonic_ns
