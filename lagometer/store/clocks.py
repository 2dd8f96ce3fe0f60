# SPDX-License-Identifier: Apache-2.0
"""Converts records of a host whose clock is not the conductor's to the conductor's clock.

That is exact enough for phases but not for a latency, because the offset is known only within its bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from lagometer.store.records import Lane

# Times of CLOCK_MONOTONIC; `source_time_ns` is the middleware's own and not one of our times.
TIMES = ("intended_ns", "publish_ns", "published_ns", "signalled_ns", "woken_ns", "taken_ns", "handled_ns")
TIMES_NS = frozenset((*TIMES, "time_ns"))


def on_our_clock(lanes: Iterable[Lane], offset_ns: int) -> list[Lane]:
    """Returns the lanes with the host's offset subtracted from every time; values not observed stay 0."""
    return [_shifted(lane, offset_ns) for lane in lanes] if offset_ns else list(lanes)


def _shifted(lane: Lane, offset_ns: int) -> Lane:
    records = lane.records.copy()
    for name in TIMES_NS.intersection(records.dtype.names or ()):
        records[name] = np.where(records[name] != 0, records[name] - offset_ns, 0)
    return replace(lane, records=records)
