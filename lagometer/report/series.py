# SPDX-License-Identifier: Apache-2.0
"""One trial's messages over time: thinned without losing an extreme, with migrations and the slowest
marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report.data import Migration, Series, SlowMessage
from lagometer.report.limits import LOST_MARKS_MAX, MIGRATION_MARKS_MAX, SLOWEST
from lagometer.report.period import find_period

Indices = npt.NDArray[np.int64]


def slowest_places(values: npt.NDArray[np.int64]) -> Indices:
    """Places of the 20 largest values, ascending; of equal ones the later."""
    count = len(values)
    if count <= SLOWEST:
        return np.arange(count)
    limit = np.partition(values, count - SLOWEST)[count - SLOWEST]
    above, equal = np.flatnonzero(values > limit), np.flatnonzero(values == limit)
    return np.sort(np.concatenate([above, equal[len(equal) - (SLOWEST - len(above)) :]]))


def keep_extremes(values: npt.NDArray[np.int64], points_max: int, slowest: Indices | None = None) -> Indices:
    """Places to keep, ascending: the slowest 20 of all, first and last, and each bucket's smallest and
    largest. `slowest`: what `slowest_places` gives, where it is known.
    """
    count = len(values)
    if count <= points_max:
        return np.arange(count)
    buckets = max(1, (points_max - SLOWEST - 4) // 2)
    size = -(-count // buckets)
    whole = values[: count // size * size].reshape(-1, size)
    begins = np.arange(len(whole)) * size
    rest = values[whole.size :]
    last = [whole.size + int(rest.argmin()), whole.size + int(rest.argmax())] if len(rest) else []
    slowest = slowest_places(values) if slowest is None else slowest
    lowest, highest = begins + whole.argmin(axis=1), begins + whole.argmax(axis=1)
    ends = np.array([0, count - 1, *last], dtype=np.int64)
    return np.unique(np.concatenate([ends, slowest, lowest, highest]))


@dataclass(frozen=True)
class _Moves:
    """Changes of CPU on one side: how many, and the first of them."""

    count: int
    first: list[Migration]


def _migrations(cpus: pl.Series, publish_ns: pl.Series, side: str, origin_ns: int) -> _Moves:
    """Messages whose CPU differs from that of the message before, in sending order."""
    if cpus.null_count():
        known = cpus.is_not_null()
        cpus, publish_ns = cpus.filter(known), publish_ns.filter(known)
    numbers = cpus.to_numpy()
    places = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
    first = [
        Migration(
            time_ns=publish_ns[place] - origin_ns,
            side=side,
            cpu_from=int(numbers[place - 1]),
            cpu_to=int(numbers[place]),
        )
        for place in places[:MIGRATION_MARKS_MAX].tolist()
    ]
    return _Moves(len(places), first)


def _slow_message(row: dict[str, int | None], origin_ns: int) -> SlowMessage:
    publish, taken = row["publish_ns"], row["taken_ns"]
    intended, published = row["intended_ns"], row["published_ns"]
    assert publish is not None and taken is not None  # delivered rows have both, see edge_series
    return SlowMessage(
        sequence=row["sequence"] or 0,
        time_ns=publish - origin_ns,
        latency_ns=taken - publish,
        send_lag_ns=None if intended is None else publish - intended,
        blocked_ns=None if published is None else published - publish,
        cpu_publish=row["cpu_publish"],
        cpu_taken=row["cpu_taken"],
    )


@dataclass(frozen=True)
class EdgeRows:
    """The measured rows of one edge in sending order, and which of them count towards latency (None: all).

    Columns are filtered one by one where they are needed: to filter all of them costs more than to read them.
    """

    rows: pl.DataFrame
    arrived: pl.Series | None

    def of_arrived(self, column: pl.Series) -> pl.Series:
        """What a column holds for the messages that count."""
        return column if self.arrived is None else column.filter(self.arrived)

    @cached_property
    def latencies(self) -> npt.NDArray[np.int64]:
        """Publish to taken, of the messages that count, in sending order."""
        return self.of_arrived(self.rows["taken_ns"] - self.rows["publish_ns"]).to_numpy()

    def places(self, numbers: Indices) -> list[int]:
        """The rows of some messages, given by their numbers among those that count."""
        if self.arrived is None:
            return [int(number) for number in numbers]
        places: list[int] = np.flatnonzero(self.arrived.to_numpy())[numbers].tolist()
        return places


def by_edge(samples: pl.DataFrame) -> dict[str, EdgeRows]:
    """What was measured on each edge; an edge without such a row is absent."""
    runs = samples["edge"].rle().struct.unnest()
    names = runs["value"].cast(pl.String).to_list()
    if len(set(names)) == len(names):  # as we write them: one edge after the other, so slices will do
        begins = [0, *np.cumsum(runs["len"].to_numpy()).tolist()]
        parts = {
            name: samples.slice(begin, length)
            for name, begin, length in zip(names, begins, runs["len"].to_list(), strict=False)
        }
    else:
        parts = {name: samples.filter(pl.col("edge") == name) for name in dict.fromkeys(names)}
    measured = {name: _measured(part) for name, part in parts.items()}
    return {name: _edge_rows(rows) for name, rows in measured.items() if not rows.is_empty()}


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of the measure phase that have a sending time; mostly one stretch of the file."""
    wanted = (rows["phase"] == "measure") & rows["publish_ns"].is_not_null()
    count, first = int(wanted.sum()), wanted.arg_max() or 0
    if bool(wanted.slice(first, count).all()):
        return rows.slice(first, count)
    return rows.filter(wanted)


def _edge_rows(rows: pl.DataFrame) -> EdgeRows:
    if not rows["publish_ns"].is_sorted():
        rows = rows.sort("publish_ns", maintain_order=True)
    arrived = (rows["outcome"] == "delivered") & rows["taken_ns"].is_not_null()
    return EdgeRows(rows, None if bool(arrived.all()) else arrived)


def edge_series(
    cell: str, trial: int, edge: str, edge_rows: EdgeRows, origin_ns: int, points_max: int
) -> Series | None:
    """The series of one edge, or None without a delivered message."""
    rows, latency = edge_rows.rows, edge_rows.latencies
    if len(latency) == 0:
        return None
    publish = edge_rows.of_arrived(rows["publish_ns"]).to_numpy()
    slowest = slowest_places(latency)
    kept = keep_extremes(latency, points_max, slowest)
    slowest = slowest[::-1]
    slowest = slowest[np.argsort(-latency[slowest], kind="stable")]
    lost = rows["publish_ns"].filter(rows["outcome"] == "lost").to_numpy()
    # Several senders or receivers share an edge's rows only end to end; then a change of CPU says nothing.
    single = _all_differ(edge_rows)
    sender = receiver = None
    if single:
        sender = _migrations(rows["cpu_publish"], rows["publish_ns"], "sender", origin_ns)
        taken_on = edge_rows.of_arrived(rows["cpu_taken"])
        receiver = _migrations(taken_on, pl.Series(publish), "receiver", origin_ns)
    marks = [mark for side in (sender, receiver) if side is not None for mark in side.first]
    spacing_ns = float(np.median(np.diff(publish))) if len(publish) > 1 else 0.0
    return Series(
        cell=cell,
        trial=trial,
        edge=edge,
        n=len(latency),
        time_us=((publish[kept] - origin_ns) // 1000).tolist(),
        latency_ns=latency[kept].tolist(),
        lost=len(lost),
        lost_time_us=((lost[:LOST_MARKS_MAX] - origin_ns) // 1000).tolist(),
        slowest=[
            _slow_message(rows.row(place, named=True), origin_ns) for place in edge_rows.places(slowest)
        ],
        migrations_sender=None if sender is None else sender.count,
        migrations_receiver=None if receiver is None else receiver.count,
        migrations=sorted(marks, key=lambda mark: mark.time_ns)[:MIGRATION_MARKS_MAX],
        period=find_period(latency, spacing_ns) if single else None,
    )


def _all_differ(edge_rows: EdgeRows) -> bool:
    """Whether no sequence was delivered twice; mostly they ascend, which is cheaper to see."""
    values = edge_rows.rows["sequence"].to_numpy()
    if bool(np.all(values[1:] > values[:-1])):
        return True
    arrived = edge_rows.of_arrived(edge_rows.rows["sequence"])
    return arrived.n_unique() == len(arrived)
