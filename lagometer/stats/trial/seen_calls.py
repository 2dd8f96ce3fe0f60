# SPDX-License-Identifier: Apache-2.0
"""How many of the kernel's calls the probe saw (docs/methodology/layers.md, "How much the probe sees").

Only calls that moved bytes, or waited and had something to report, are compared. A call counts as seen if the
probe recorded its return between the kernel's two readings, so the share is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lagometer.store import probes
from lagometer.store.probes import ProbeLog

# As the agent counts them (`agent/observe/system_calls.py`). `read` and `write` also serve files and timers.
GROUPS = ("send", "receive", "wait", "write", "read")


@dataclass(frozen=True)
class Seen:
    """The calls of one group: how many the kernel carried out, and how many of them the probe recorded."""

    kernel: int = 0
    probe: int = 0

    @property
    def share(self) -> float | None:
        """The part that the probe saw, at least; None if there were no calls."""
        return min(1.0, self.probe / self.kernel) if self.kernel else None

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.kernel + other.kernel, self.probe + other.probe)


@dataclass(frozen=True)
class SeenCalls:
    """The calls of a trial, by group. absent: why those of a worker are not known; None if all are."""

    groups: Mapping[str, Seen] = field(default_factory=dict)
    absent: str | None = None

    def as_json(self) -> dict[str, Any]:
        """For the journal."""
        groups = {name: {"kernel": seen.kernel, "probe": seen.probe} for name, seen in self.groups.items()}
        return {"groups": groups, "absent": self.absent}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> SeenCalls:
        """Reads the output of `as_json`."""
        return cls({name: Seen(**counts) for name, counts in entry["groups"].items()}, entry["absent"])


def added(all_calls: Iterable[SeenCalls]) -> SeenCalls:
    """The sums. They are absent if a part is."""
    groups: dict[str, Seen] = {}
    for calls in all_calls:
        if calls.absent is not None:
            return SeenCalls(absent=calls.absent)
        for name, seen in calls.groups.items():
            groups[name] = groups.get(name, Seen()) + seen
    return SeenCalls(groups)


def seen_calls(log: ProbeLog, kernel: Mapping[str, int], begin_ns: int, end_ns: int) -> SeenCalls:
    """One process's calls. kernel: what was counted from before `begin_ns` until after `end_ns`, which are
    times on the clock of the log."""
    calls = log.calls
    within = (calls["end_ns"] >= begin_ns) & (calls["end_ns"] <= end_ns)
    by_descriptor = calls["descriptor"] >= 0
    plain = calls["plain"] != 0
    outward = (calls["call"] == probes.SEND) | ((calls["call"] == probes.NOTIFY) & by_descriptor)
    inward = (calls["call"] == probes.RECEIVE) | (calls["call"] == probes.DRAINED)
    rows = {
        "send": outward & ~plain,
        "receive": inward & ~plain,
        "wait": calls["call"] == probes.WAIT,
        "write": outward & plain,
        "read": inward & plain,
    }
    return SeenCalls({name: Seen(kernel.get(name, 0), _count(log, rows[name] & within)) for name in GROUPS})


def _count(log: ProbeLog, rows: npt.NDArray[np.bool_]) -> int:
    """How many calls these rows are: `sendmmsg` and `recvmmsg` have one for each datagram."""
    return len(set(zip(log.threads[rows].tolist(), log.calls["begin_ns"][rows].tolist(), strict=True)))
