# SPDX-License-Identifier: Apache-2.0
"""One trial's messages over time: thinned without losing an extreme, with migrations and the slowest
marked.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report.data import Migration, Series, SlowMessage
from lagometer.report.limits import LOST_MARKS_MAX, MIGRATION_MARKS_MAX, SLOWEST
from lagometer.report.period import find_period

Indices = npt.NDArray[np.int64]


def keep_extremes(values: npt.NDArray[np.int64], points_max: int) -> Indices:
    """Places to keep, ascending: the slowest 20 of all, first and last, and each bucket's smallest and
    largest.
    """
    count = len(values)
    if count <= points_max:
        return np.arange(count)
    slowest = np.argsort(values, kind="stable")[-SLOWEST:]
    buckets = max(1, (points_max - SLOWEST - 2) // 2)
    bounds = np.linspace(0, count, buckets + 1).astype(np.int64)
    kept = [0, count - 1, *slowest.tolist()]
    for begin, end in itertools.pairwise(bounds):
        if end > begin:
            kept += [begin + int(np.argmin(values[begin:end])), begin + int(np.argmax(values[begin:end]))]
    return np.unique(np.array(kept, dtype=np.int64))


def _migrations(frame: pl.DataFrame, column: str, side: str, origin_ns: int) -> list[Migration]:
    """Messages whose CPU differs from that of the message before, in sending order."""
    known = frame.select("publish_ns", pl.col(column).cast(pl.Int64).alias("cpu")).drop_nulls()
    moved = known.with_columns(pl.col("cpu").shift().alias("before")).filter(
        pl.col("cpu") != pl.col("before")
    )
    return [
        Migration(time_ns=publish - origin_ns, side=side, cpu_from=before, cpu_to=cpu)
        for publish, cpu, before in moved.iter_rows()
    ]


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
    """The rows of the measure phase that have a sending time, in sending order."""
    wanted = (pl.col("phase").cast(pl.String) == "measure") & pl.col("publish_ns").is_not_null()
    return samples.filter(wanted).sort("publish_ns")


def delivered(measured_rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that count towards latency."""
    arrived = (pl.col("outcome").cast(pl.String) == "delivered") & pl.col("taken_ns").is_not_null()
    return measured_rows.filter(arrived)


def edge_series(
    cell: str, trial: int, edge: str, rows: pl.DataFrame, origin_ns: int, points_max: int
) -> Series | None:
    """The series of one edge, or None without a delivered message. `rows` are the edge's, from `measured`."""
    arrived = delivered(rows)
    if arrived.is_empty():
        return None
    latency = (arrived["taken_ns"] - arrived["publish_ns"]).to_numpy().astype(np.int64)
    publish = arrived["publish_ns"].to_numpy().astype(np.int64)
    kept = keep_extremes(latency, points_max)
    slowest = np.sort(np.argsort(latency, kind="stable")[-SLOWEST:])[::-1]
    slowest = slowest[np.argsort(-latency[slowest], kind="stable")]
    lost = rows.filter(pl.col("outcome").cast(pl.String) == "lost")["publish_ns"].to_numpy()
    # Several senders or receivers share an edge's rows only end to end; then a change of CPU says nothing.
    single = arrived["sequence"].n_unique() == arrived.height
    sender = _migrations(rows, "cpu_publish", "sender", origin_ns) if single else None
    receiver = _migrations(arrived, "cpu_taken", "receiver", origin_ns) if single else None
    marks = sorted([*(sender or []), *(receiver or [])], key=lambda each: each.time_ns)
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
        migrations_sender=None if sender is None else len(sender),
        migrations_receiver=None if receiver is None else len(receiver),
        migrations=marks[:MIGRATION_MARKS_MAX],
        period=find_period(latency, spacing_ns) if single else None,
    )
