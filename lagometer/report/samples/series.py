# SPDX-License-Identifier: Apache-2.0
"""One trial's messages over time: thinned without losing an extreme, with marks at migrations and at the
slowest messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report.limits import LOST_MARKS_MAX, MIGRATION_MARKS_MAX, SLOWEST
from lagometer.report.samples.data import Migration, Series, SlowMessage
from lagometer.report.samples.period import MESSAGES_MAX, find_period
from lagometer.report.samples.reading import CPU_UNKNOWN, EdgeRows

Indices = npt.NDArray[np.int64]
_LARGE = 200_000
_OF_SLOW = (
    "sequence",
    "publish_ns",
    "latency_ns",
    "intended_ns",
    "published_ns",
    "cpu_publish",
    "cpu_taken",
)


def slowest_places(values: npt.NDArray[np.int64]) -> Indices:
    """Indices of the 20 largest values, ascending; the later one of equal values."""
    count = len(values)
    if count <= SLOWEST:
        return np.arange(count)
    if count > _LARGE:  # one pass with a heap of 20; a partition would copy and permute all
        limit = pl.Series(values).top_k(SLOWEST).to_numpy().min()
    else:
        limit = np.partition(values, count - SLOWEST)[count - SLOWEST]
    above, equal = np.flatnonzero(values > limit), np.flatnonzero(values == limit)
    return np.sort(np.concatenate([above, equal[len(equal) - (SLOWEST - len(above)) :]]))


def keep_extremes(values: npt.NDArray[np.int64], points_max: int, slowest: Indices | None = None) -> Indices:
    """Indices to keep, ascending: the slowest 20 of all, first and last, and each bucket's smallest and
    largest. `slowest`: the result of `slowest_places`, if known.
    """
    count = len(values)
    if count <= points_max:
        return np.arange(count)
    buckets = max(1, (points_max - SLOWEST - 4) // 2)
    size = -(-count // buckets)
    bucketed = values[: count // size * size].reshape(-1, size)
    begins = np.arange(len(bucketed)) * size
    remainder = values[bucketed.size :]
    last = (
        [bucketed.size + int(remainder.argmin()), bucketed.size + int(remainder.argmax())]
        if len(remainder)
        else []
    )
    slowest = slowest_places(values) if slowest is None else slowest
    lowest, highest = begins + bucketed.argmin(axis=1), begins + bucketed.argmax(axis=1)
    ends = np.array([0, count - 1, *last], dtype=np.int64)
    return np.unique(np.concatenate([ends, slowest, lowest, highest]))


@dataclass(frozen=True)
class _Moves:
    """CPU changes on one side: how many, and those that are marked."""

    count: int
    marked: list[Migration]


def _migrations(
    cpus: npt.NDArray[Any], publish_ns: npt.NDArray[np.int64], side: str, origin_ns: int
) -> _Moves:
    """Messages whose CPU differs from the previous message's, in sending order."""
    known = cpus != CPU_UNKNOWN
    if not known.all():
        cpus, publish_ns = cpus[known], publish_ns[known]
    places = np.flatnonzero(cpus[1:] != cpus[:-1]) + 1
    marked = [
        Migration(
            time_ns=int(publish_ns[index]) - origin_ns,
            side=side,
            cpu_from=int(cpus[index - 1]),
            cpu_to=int(cpus[index]),
        )
        for index in places[_spread(len(places), MIGRATION_MARKS_MAX // 2)].tolist()
    ]
    return _Moves(len(places), marked)


def _spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """The places of at most so many of `count` marks, evenly spread: the first alone would show a trial that
    became calm."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).astype(np.int64))


def _slow_message(row: dict[str, int | None], origin_ns: int) -> SlowMessage:
    publish, latency = row["publish_ns"], row["latency_ns"]
    intended, published = row["intended_ns"], row["published_ns"]
    assert publish is not None and latency is not None  # delivered rows have both, see reading
    return SlowMessage(
        sequence=row["sequence"] or 0,
        time_ns=publish - origin_ns,
        latency_ns=latency,
        send_lag_ns=None if intended is None else publish - intended,
        blocked_ns=None if published is None else published - publish,
        cpu_publish=_cpu(row["cpu_publish"]),
        cpu_taken=_cpu(row["cpu_taken"]),
    )


def _cpu(number: int | None) -> int | None:
    return None if number == CPU_UNKNOWN else number


def edge_series(
    cell: str, trial: int, edge: str, edge_rows: EdgeRows, origin_ns: int, points_max: int
) -> Series | None:
    """The series of one edge, or None without a delivered message."""
    rows, latency = edge_rows.rows, edge_rows.latencies
    if len(latency) == 0:
        return None
    publish = edge_rows.of_arrived(edge_rows.publish_ns)
    slowest = slowest_places(latency)
    places = keep_extremes(latency, points_max, slowest)
    slowest = slowest[::-1]
    slowest = slowest[np.argsort(-latency[slowest], kind="stable")]
    lost = edge_rows.publish_ns[edge_rows.array("lost")]
    # Several senders or receivers share an edge's rows only end to end; a CPU change means nothing there.
    single = _all_differ(edge_rows)
    sender = receiver = None
    if single:
        sender = _migrations(edge_rows.array("cpu_publish"), edge_rows.publish_ns, "sender", origin_ns)
        taken_on = edge_rows.of_arrived(edge_rows.array("cpu_taken"))
        receiver = _migrations(taken_on, publish, "receiver", origin_ns)
    marks = [mark for side in (sender, receiver) if side is not None for mark in side.marked]
    begin = publish[:MESSAGES_MAX]  # the search range for a period
    spacing_ns = float(np.median(np.diff(begin))) if len(begin) > 1 else 0.0
    return Series(
        cell=cell,
        trial=trial,
        edge=edge,
        n=len(latency),
        time_us=((publish[places] - origin_ns) // 1000).tolist(),
        latency_ns=latency[places].tolist(),
        lost=len(lost),
        lost_time_us=((lost[_spread(len(lost), LOST_MARKS_MAX)] - origin_ns) // 1000).tolist(),
        slowest=[
            _slow_message(row, origin_ns)
            for row in rows[list(_OF_SLOW)][edge_rows.places(slowest)].iter_rows(named=True)
        ],
        migrations_sender=None if sender is None else sender.count,
        migrations_receiver=None if receiver is None else receiver.count,
        migrations=sorted(marks, key=lambda mark: mark.time_ns),
        period=find_period(latency, spacing_ns) if single else None,
    )


def _all_differ(edge_rows: EdgeRows) -> bool:
    """Whether every delivered sequence is unique; mostly they ascend, which is cheaper to check."""
    values = edge_rows.array("sequence")
    if bool(np.all(values[1:] > values[:-1])):
        return True
    arrived = edge_rows.of_arrived(values)
    return len(np.unique(arrived)) == len(arrived)
