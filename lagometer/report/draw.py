# SPDX-License-Identifier: Apache-2.0
"""Curves and series of a report: what only the samples can tell, read once, a few files at a time.

A campaign may hold a hundred million samples. So only the columns that are needed are read, latencies alone
are kept until their cell is done, and files are worked on by as many threads as there are CPUs to spare:
Polars and NumPy leave Python's lock alone while they work.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report import limits
from lagometer.report.curves import curve
from lagometer.report.data import Curve, Row, Series
from lagometer.report.series import by_edge, edge_series
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign

CURVE_COLUMNS = ("edge", "publish_ns", "taken_ns", "phase", "outcome")
SERIES_COLUMNS = (*CURVE_COLUMNS, "sequence", "intended_ns", "published_ns", "cpu_publish", "cpu_taken")
THREADS_MAX = 4
MESSAGES_AT_ONCE = 16_000_000  # of all the files that are worked on at a time, which bounds the memory

Key = tuple[str, int | None, str]
Given = TypeVar("Given")
Made = TypeVar("Made")


@dataclass
class Drawn:
    """What the samples have given so far."""

    curves: list[Curve] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    payload_bytes: dict[str, int] = field(default_factory=dict)  # as seen on the wire, by cell


@dataclass(frozen=True)
class _Task:
    """One file of samples, and what is wanted of it."""

    cell: str
    trial: int
    rows: Sequence[Row]
    series: frozenset[str]  # edges whose series is drawn
    points: int
    payload: bool  # whether the cell's payload must be taken from the samples

    @property
    def columns(self) -> tuple[str, ...]:
        columns = SERIES_COLUMNS if self.series else CURVE_COLUMNS
        return (*columns, "payload_bytes") if self.payload else columns


@dataclass
class _Read:
    """What came of it."""

    latencies: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)  # by edge, of a valid trial
    series: list[Series] = field(default_factory=list)
    payload_bytes: int | None = None
    unread: str | None = None


def draw(campaign: Campaign, rows: Sequence[Row], payload_known: frozenset[str]) -> tuple[Drawn, list[str]]:
    """Curves and series of all trials' rows, and the notes on what was thinned or left out.

    `payload_known`: the cells whose payload the manifest tells. A trial whose samples can't be read is named
    among the notes.
    """
    wanted: dict[Key, Row] = {(row.cell, row.trial, row.edge): row for row in rows if row.n > 0}
    chosen = sorted(wanted, key=lambda key: (key[2] != END_TO_END, key[1] or 0))
    fitting = set(chosen[: limits.SERIES_POINTS_TOTAL // limits.SERIES_POINTS_MIN])
    points = limits.SERIES_POINTS_TOTAL // max(1, len(fitting))
    points = max(limits.SERIES_POINTS_MIN, min(limits.SERIES_POINTS_MAX, points))
    tasks = list(_tasks(wanted, fitting, points, payload_known))
    drawn = Drawn()
    with ThreadPoolExecutor(_threads(tasks)) as pool:
        cell, latencies = "", dict[str, list[npt.NDArray[np.int64]]]()
        for task, read in _in_order(pool, lambda each: _read(campaign, each), tasks):
            if task.cell != cell:
                _add_curves(pool, cell, latencies, drawn)
                cell, latencies = task.cell, {}
            for edge, values in read.latencies.items():
                latencies.setdefault(edge, []).append(values)
            _add(task, read, drawn)
        _add_curves(pool, cell, latencies, drawn)
    return drawn, _notes(drawn, len(wanted), len(fitting), points)


def _tasks(
    wanted: dict[Key, Row], fitting: set[Key], points: int, payload_known: frozenset[str]
) -> Iterator[_Task]:
    """The files to read: cells in the order of their rows, trials ascending."""
    files: dict[str, dict[int, list[Row]]] = {}
    for row in wanted.values():
        if row.trial is not None:
            files.setdefault(row.cell, {}).setdefault(row.trial, []).append(row)
    for cell, trials in files.items():
        for trial, rows in sorted(trials.items()):
            series = frozenset(row.edge for row in rows if (cell, trial, row.edge) in fitting)
            yield _Task(cell, trial, rows, series, points, cell not in payload_known)


def _threads(tasks: Sequence[_Task]) -> int:
    largest = max((sum(row.n for row in task.rows) for task in tasks), default=0)
    fitting = MESSAGES_AT_ONCE // max(1, largest)
    return max(1, min(THREADS_MAX, len(os.sched_getaffinity(0)), fitting))


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[Given], Made], given: Iterable[Given]
) -> Iterator[tuple[Given, Made]]:
    """What the function makes of each, in order; no more is begun ahead than the pool can work on."""
    ahead: deque[tuple[Given, Future[Made]]] = deque()
    for each in given:
        ahead.append((each, pool.submit(function, each)))
        if len(ahead) > pool._max_workers:
            first, future = ahead.popleft()
            yield first, future.result()
    for first, future in ahead:
        yield first, future.result()


def _read(campaign: Campaign, task: _Task) -> _Read:
    read = _Read()
    try:
        samples = campaign.samples(task.cell, task.trial, task.columns)
    except (CampaignError, pl.exceptions.PolarsError) as error:
        read.unread = f"The samples of {task.cell}, trial {task.trial}, could not be read: {error}"
        return read
    edges = by_edge(samples)
    if not edges:
        return read
    if task.payload:
        seen = samples["payload_bytes"].max()
        read.payload_bytes = seen if isinstance(seen, int) else None
    origin_ns = min(int(each.rows["publish_ns"][0]) for each in edges.values())
    for row in task.rows:
        if row.edge not in edges:
            continue
        edge_rows = edges[row.edge]
        if row.valid:
            read.latencies[row.edge] = edge_rows.latencies
        if row.edge in task.series:
            series = edge_series(task.cell, task.trial, row.edge, edge_rows, origin_ns, task.points)
            read.series += [] if series is None else [series]
    return read


def _add(task: _Task, read: _Read, drawn: Drawn) -> None:
    drawn.series += read.series
    drawn.unread += [] if read.unread is None else [read.unread]
    if read.payload_bytes is not None:
        drawn.payload_bytes[task.cell] = max(read.payload_bytes, drawn.payload_bytes.get(task.cell, 0))


def _add_curves(
    pool: ThreadPoolExecutor, cell: str, latencies: dict[str, list[npt.NDArray[np.int64]]], drawn: Drawn
) -> None:
    room = max(0, limits.CURVES_MAX - len(drawn.curves))
    made = pool.map(lambda item: curve(cell, item[0], item[1]), list(latencies.items())[:room])
    drawn.curves += [each for each in made if each is not None]


def _notes(drawn: Drawn, wanted: int, fitting: int, points: int) -> list[str]:
    notes = []
    thinned = [series for series in drawn.series if len(series.time_us) < series.n]
    if thinned:
        notes.append(
            f"{len(thinned):,} of {len(drawn.series):,} time series are thinned to about {points:,} messages "
            "each: every run of messages keeps its fastest and its slowest, and the slowest "
            f"{limits.SLOWEST} are always there."
        )
    if fitting < wanted:
        notes.append(f"{wanted - fitting:,} of {wanted:,} time series are left out; all are in samples/.")
    if len(drawn.curves) >= limits.CURVES_MAX:
        notes.append(f"Percentile curves beyond the first {limits.CURVES_MAX:,} are left out.")
    return notes + drawn.unread
