# SPDX-License-Identifier: Apache-2.0
"""Converts the clock a middleware stamps messages with to the clock probes stamp calls with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ClockPair:
    """CLOCK_REALTIME and CLOCK_MONOTONIC at one moment. error_ns: how far apart the two readings may be."""

    monotonic_ns: int
    realtime_ns: int
    error_ns: int

    @property
    def offset_ns(self) -> int:
        """How far CLOCK_REALTIME is ahead."""
        return self.realtime_ns - self.monotonic_ns


@dataclass(frozen=True)
class RealtimeClock:
    """CLOCK_REALTIME between two moments at which both clocks were read."""

    begin: ClockPair
    end: ClockPair

    @property
    def drift_ns(self) -> int:
        """How far CLOCK_REALTIME gained on CLOCK_MONOTONIC in between: it was slewed, or set."""
        return self.end.offset_ns - self.begin.offset_ns

    @property
    def error_ns(self) -> int:
        """How wrong a converted time may be, if the clock was slewed evenly."""
        return max(self.begin.error_ns, self.end.error_ns)

    def to_monotonic(self, realtime_ns: Times) -> Times:
        """Converts times of CLOCK_REALTIME to CLOCK_MONOTONIC."""
        whole_ns = max(1, self.end.realtime_ns - self.begin.realtime_ns)
        since_ns = realtime_ns - self.begin.realtime_ns
        ahead_ns = np.rint(since_ns * (self.drift_ns / whole_ns)).astype(np.int64)
        monotonic_ns: Times = realtime_ns - self.begin.offset_ns - ahead_ns
        return monotonic_ns
