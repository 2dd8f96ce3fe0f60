# SPDX-License-Identifier: Apache-2.0
"""Converts the clock a middleware stamps messages with to the clock probes stamp calls with."""

from __future__ import annotations

from collections.abc import Sequence
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
    """CLOCK_REALTIME between two moments at which both clocks were read.

    Time services make both clocks faster or slower alike. So how far one is ahead changes only in a step: if
    CLOCK_REALTIME is set, or the machine sleeps.
    """

    begin: ClockPair
    end: ClockPair

    @property
    def drift_ns(self) -> int:
        """How far CLOCK_REALTIME gained on CLOCK_MONOTONIC in between."""
        return self.end.offset_ns - self.begin.offset_ns

    @property
    def error_ns(self) -> int:
        """How wrong each of the two readings may be."""
        return max(self.begin.error_ns, self.end.error_ns)

    @property
    def was_set(self) -> bool:
        """Whether it gained more than the readings may be wrong."""
        return abs(self.drift_ns) > 2 * self.error_ns

    @property
    def margin_ns(self) -> int:
        """How wrong a converted time may be."""
        return self.error_ns if self.was_set else self.error_ns + abs(self.drift_ns)

    def to_monotonic(self, realtime_ns: Times) -> Sequence[Times]:
        """Converts times of CLOCK_REALTIME to CLOCK_MONOTONIC, in all possible ways: if the clock was set,
        nobody knows which of them were before."""
        pairs = (self.begin, self.end) if self.was_set else (self.begin,)
        return [realtime_ns - pair.offset_ns for pair in pairs]
