# SPDX-License-Identifier: Apache-2.0
"""One trial's messages over time: thinned without losing an extreme, with migrations and the slowest
marked.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

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


def keep_extremes(values: npt.NDArray[np.int64], points_max: int) -> Indices:
    """Places to keep, ascending: the slowest 20 of all, first and last, and each bucket's smallest and
    largest.
    """
    count = len(values)
    if count <= points_max:
        return np.arange(count)
    buckets = max(1, (points_max - SLOWEST - 2) // 2)
    bounds = np.linspace(0, count, buckets + 1).astype(np.int64)
    kept = [0, count - 1, *slowest_places(values).tolist()]
    for begin, end in itertools.pairwise(bounds.tolist()):
        if end > begin:
            kept += [begin + int(values[begin:end].argmin()), begin + int(values[begin:end].argmax())]
    return np.unique(np.array(kept, dtype=np.int64))


@dataclass(frozen=True)
class _Moves:
    """Changes of CPU on one side: how many, and the first of them."""

    count: int
    first: list[Migration]


def _migrations(frame: pl.DataFrame, column: str, side: str, origin_ns: int) -> _Moves:
    """Messages whose CPU differs from that of the message before, in sending order."""
    known = frame if frame[column].null_count() == 0 else frame.filter(pl.col(column).is_not_null())
    cpus, publish = known[column].to_numpy(), known["publish_ns"]
    places = np.flatnonzero(cpus[1:] != cpus[:-1]) + 1
    first = [
        Migration(
            time_ns=publish[place] - origin_ns,
            side=side,
            cpu_from=int(cpus[place - 1]),
            cpu_to=int(cpus[place]),
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


def measured(samples: pl.DataFrame) -> pl.DataFrame:
    """The rows of the measure phase that have a sending time, in the order of the file."""
    return samples.filter((pl.col("phase") == "measure") & pl.col("publish_ns").is_not_null())


def by_edge(measured_rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The rows of each edge, in sending order."""
    runs = measured_rows["edge"].rle().struct.unnest()
    names = runs["value"].cast(pl.String).to_list()
    if len(set(names)) == len(names):  # as we write them: one edge after the other, so slices will do
        ends = np.cumsum(runs["len"].to_numpy())
        parts = {
            name: measured_rows.slice(int(end) - length, length)
            for name, end, length in zip(names, ends, runs["len"].to_list(), strict=True)
        }
    else:
        parts = {name: measured_rows.filter(pl.col("edge") == name) for name in dict.fromkeys(names)}
    return {
        name: rows if rows["publish_ns"].is_sorted() else rows.sort("publish_ns", maintain_order=True)
        for name, rows in parts.items()
    }


def delivered(edge_rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that count towards latency."""
    return edge_rows.filter((pl.col("outcome") == "delivered") & pl.col("taken_ns").is_not_null())


def edge_series(
    cell: str, trial: int, edge: str, rows: pl.DataFrame, origin_ns: int, points_max: int
) -> Series | None:
    """The series of one edge, or None without a delivered message. `rows` are the edge's, from `by_edge`."""
    arrived = delivered(rows)
    if arrived.is_empty():
        return None
    publish = arrived["publish_ns"].to_numpy()
    latency = (arrived["taken_ns"] - arrived["publish_ns"]).to_numpy()
    kept = keep_extremes(latency, points_max)
    slowest = slowest_places(latency)[::-1]
    slowest = slowest[np.argsort(-latency[slowest], kind="stable")]
    lost = rows.filter(pl.col("outcome") == "lost")["publish_ns"].to_numpy()
    # Several senders or receivers share an edge's rows only end to end; then a change of CPU says nothing.
    single = _all_differ(arrived["sequence"])
    sender = _migrations(rows, "cpu_publish", "sender", origin_ns) if single else None
    receiver = _migrations(arrived, "cpu_taken", "receiver", origin_ns) if single else None
    marks = [mark for side in (sender, receiver) if side is not None for mark in side.first]
    spacing_ns = float(np.median(np.diff(publish))) if len(publish) > 1 else 0.0
    return Series(
        cell=cell,
        trial=trial,
        edge=edge,
        n=arrived.height,
        time_us=((publish[kept] - origin_ns) // 1000).tolist(),
        latency_ns=latency[kept].tolist(),
        lost=len(lost),
        lost_time_us=((lost[:LOST_MARKS_MAX] - origin_ns) // 1000).tolist(),
        slowest=[_slow_message(arrived.row(int(index), named=True), origin_ns) for index in slowest],
        migrations_sender=None if sender is None else sender.count,
        migrations_receiver=None if receiver is None else receiver.count,
        migrations=sorted(marks, key=lambda mark: mark.time_ns)[:MIGRATION_MARKS_MAX],
        period=find_period(latency, spacing_ns) if single else None,
    )


def _all_differ(sequences: pl.Series) -> bool:
    """Whether no number occurs twice; mostly they ascend, which is cheaper to see."""
    values = sequences.to_numpy()
    return bool(np.all(values[1:] > values[:-1])) or sequences.n_unique() == len(values)
