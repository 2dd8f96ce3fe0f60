# SPDX-License-Identifier: Apache-2.0
"""What time services say of this host's clock beside a trial, and where the clock that they set was then.

Services set CLOCK_REALTIME; everything here is on CLOCK_MONOTONIC. They pull both alike, so the distance
between the two changes only when the wall clock is set.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lagometer.agent.observe.synchronisation import synchronisation

ATTEMPTS = 5  # the narrowest counts: the others were interrupted


@dataclass(frozen=True)
class ServiceReport:
    """ahead_ns: the least and the most that CLOCK_REALTIME was ahead of CLOCK_MONOTONIC at `at_ns` of the
    latter; facts: what `synchronisation` returns."""

    at_ns: int
    ahead_ns: tuple[int, int]
    facts: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Returns it in the form of the journal, which `from_json` reads."""
        return {"at_ns": self.at_ns, "ahead_ns": list(self.ahead_ns), **self.facts}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> ServiceReport:
        """Reads the output of `as_json`. Raises KeyError, TypeError, ValueError for anything else."""
        least_ns, most_ns = told["ahead_ns"]
        facts = {name: value for name, value in told.items() if name not in ("at_ns", "ahead_ns")}
        return cls(int(told["at_ns"]), (int(least_ns), int(most_ns)), facts)


def service_report() -> ServiceReport:
    """Asks the services that run; takes a second at most for each that does not answer."""
    facts = synchronisation()
    readings = [
        (time.monotonic_ns(), time.clock_gettime_ns(time.CLOCK_REALTIME), time.monotonic_ns())
        for _ in range(ATTEMPTS)
    ]
    begin_ns, real_ns, end_ns = min(readings, key=lambda each: each[2] - each[0])
    return ServiceReport(end_ns, (real_ns - end_ns, real_ns - begin_ns), facts)
