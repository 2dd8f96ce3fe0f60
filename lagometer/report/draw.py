# SPDX-License-Identifier: Apache-2.0
"""Curves and series of a report: what only the samples can tell, read once, a few files at a time.

A campaign may hold a hundred million samples. So only the columns that are needed are read, latencies alone
are kept until their cell is done, small files are read many at a time, and as many threads work on them as
there are CPUs: Polars and NumPy leave Python's lock alone while they work.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report import limits
from lagometer.report.curves import curve
from lagometer.report.data import Curve, Row, Series
from lagometer.report.reading import EdgeRows, Wanted, read_files
from lagometer.report.series import edge_series
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign

THREADS_MAX = 4
MESSAGES_AT_ONCE = 16_000_000  # of all the files that are worked on at a time, which bounds the memory
MESSAGES_PER_BATCH, FILES_PER_BATCH = 1_000_000, 64

Key = tuple[str, int | None, str]
Latencies = dict[str, list[npt.NDArray[np.int64]]]  # by edge, of each valid trial of a cell
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
    curves: bool  # whether it is its cell's only file, so that its curves are the cell's

    @property
    def messages(self) -> int:
        """How many the file holds, about."""
        return sum(row.n for row in self.rows)


@dataclass
class _Read:
    """What came of it."""

    latencies: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)  # by edge, of a valid trial
    curves: list[Curve] = field(default_factory=list)  # in place of latencies, where the task asks for them
    series: list[Series] = field(default_factory=list)
    payload_bytes: int | None = None
    unread: str | None = None


def draw(
    campaign: Campaign,
    rows: Sequence[Row],
    payload_known: frozenset[str],
    alphas: Mapping[str, float] | None = None,
    in_passing: bool = False,
) -> tuple[Drawn, list[str]]:
    """Curves and series of all trials' rows, and the notes on what was thinned or left out.

    `payload_known`: the cells whose payload the manifest tells. `alphas`: of the cells whose curves have a
    band; `in_passing`: it is made while the curve is (see `curves.curve`). A trial whose samples can't be
    read is named among the notes.
    """
    wanted: dict[Key, Row] = {(row.cell, row.trial, row.edge): row for row in rows if row.n > 0}
    chosen = sorted(wanted, key=lambda key: (key[2] != END_TO_END, key[1] or 0))
    fitting = set(chosen[: limits.SERIES_POINTS_TOTAL // limits.SERIES_POINTS_MIN])
    points = limits.SERIES_POINTS_TOTAL // max(1, len(fitting))
    points = max(limits.SERIES_POINTS_MIN, min(limits.SERIES_POINTS_MAX, points))
    tasks = list(_tasks(wanted, fitting, points, payload_known))
    drawn = Drawn()
    with ThreadPoolExecutor(_threads(tasks)) as pool:

        def add_curves(cell: str, latencies: Latencies) -> None:
            room = max(0, limits.CURVES_MAX - len(drawn.curves))
            alpha = (alphas or {}).get(cell)
            listed = list(latencies.items())[:room]
            made = pool.map(lambda item: curve(cell, item[0], item[1], alpha, in_passing), listed)
            drawn.curves += [each for each in made if each is not None]

        cell, latencies = "", Latencies()
        for batch, made in _in_order(pool, lambda each: _read(campaign, each), _batches(tasks)):
            for task, read in zip(batch, made, strict=True):
                if task.cell != cell:
                    add_curves(cell, latencies)
                    cell, latencies = task.cell, {}
                for edge, values in read.latencies.items():
                    latencies.setdefault(edge, []).append(values)
                _add(task, read, drawn)
        add_curves(cell, latencies)
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
            known, alone = cell in payload_known, len(trials) == 1
            yield _Task(cell, trial, rows, series, points, not known, alone)


def _threads(tasks: Sequence[_Task]) -> int:
    largest = max((task.messages for task in tasks), default=0)
    fitting = MESSAGES_AT_ONCE // max(1, largest)
    return max(1, min(THREADS_MAX, len(os.sched_getaffinity(0)), fitting))


def _batches(tasks: Iterable[_Task]) -> Iterator[list[_Task]]:
    """Small files together, a large one alone."""
    batch: list[_Task] = []
    messages = 0
    for task in tasks:
        messages += task.messages
        if batch and (messages > MESSAGES_PER_BATCH or len(batch) == FILES_PER_BATCH):
            yield batch
            batch, messages = [], task.messages
        batch.append(task)
    if batch:
        yield batch


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


def _read(campaign: Campaign, batch: Sequence[_Task]) -> list[_Read]:
    wanted = [Wanted(task.cell, task.trial, bool(task.series), task.payload) for task in batch]
    return [
        _made(task, samples, edges)
        for task, (samples, edges) in zip(batch, read_files(campaign, wanted), strict=True)
    ]


def _made(task: _Task, samples: pl.DataFrame, edges: dict[str, EdgeRows] | CampaignError) -> _Read:
    """What a file gives: latencies of the valid trial's edges, and their series."""
    read = _Read()
    if isinstance(edges, CampaignError):
        read.unread = f"The samples of {task.cell}, trial {task.trial}, could not be read: {edges}"
        return read
    if not edges:
        return read
    if task.payload:
        seen = samples["payload_bytes"].max()
        read.payload_bytes = seen if isinstance(seen, int) else None
    origin_ns = min(int(each.publish_ns[0]) for each in edges.values())
    for row in task.rows:
        if row.edge not in edges:
            continue
        edge_rows = edges[row.edge]
        if row.valid:
            _add_latencies(task, row.edge, edge_rows.latencies, read)
        if row.edge in task.series:
            series = edge_series(task.cell, task.trial, row.edge, edge_rows, origin_ns, task.points)
            read.series += [] if series is None else [series]
    return read


def _add_latencies(task: _Task, edge: str, latencies: npt.NDArray[np.int64], read: _Read) -> None:
    """Kept until the cell is done, or made into its curve at once (one trial gives no band): thousands of
    cells, each with a turn of its own in the pool's queue, would wait for the files that are read ahead.
    """
    if not task.curves:
        read.latencies[edge] = latencies
        return
    made = curve(task.cell, edge, [latencies])
    read.curves += [] if made is None else [made]


def _add(task: _Task, read: _Read, drawn: Drawn) -> None:
    drawn.curves += read.curves[: max(0, limits.CURVES_MAX - len(drawn.curves))]
    drawn.series += read.series
    drawn.unread += [] if read.unread is None else [read.unread]
    if read.payload_bytes is not None:
        drawn.payload_bytes[task.cell] = max(read.payload_bytes, drawn.payload_bytes.get(task.cell, 0))


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
