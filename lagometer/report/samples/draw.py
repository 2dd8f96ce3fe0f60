# SPDX-License-Identifier: Apache-2.0
"""Curves and series of a report: what only the samples contain, read once, a few files at a time.

A campaign may hold a hundred million samples. So it reads only the necessary columns, keeps only latencies
until their cell is done, reads many small files at a time, and uses as many threads as there are CPUs: Polars
and NumPy release Python's lock while they work. Processes read thousands of small files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from lagometer.report import limits
from lagometer.report.samples.curves import curve
from lagometer.report.samples.data import Curve, Series
from lagometer.report.samples.files import Made, Task, TaskEdge, read
from lagometer.report.samples.reader_pool import begin, cpus
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.data import Row

MESSAGES_AT_ONCE = 16_000_000  # in all files processed at a time, which bounds the memory
MESSAGES_PER_BATCH, FILES_PER_BATCH = 1_000_000, 64

Key = tuple[str, int | None, str]
Latencies = dict[str, list[npt.NDArray[np.int64]]]  # by edge, for each valid trial of a cell
Given = TypeVar("Given")
Result = TypeVar("Result")


@dataclass
class Drawn:
    """What the samples have yielded so far."""

    curves: list[Curve] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    payload_bytes: dict[str, int] = field(default_factory=dict)  # by cell, as seen on the wire


class Drawing:
    """Curves and series of all trials' rows. Starts early if it can run in parallel, so it must be closed.

    `payload_known`: the cells whose payload is in the manifest. `readers`: the processes that read samples,
    if there are any (`reader_pool.readers_of`).
    """

    def __init__(
        self,
        campaign: Campaign,
        rows: Sequence[Row],
        payload_known: frozenset[str],
        readers: ProcessPoolExecutor | None = None,
    ) -> None:
        self._campaign = campaign
        wanted: dict[Key, Row] = {(row.cell, row.trial, row.edge): row for row in rows if row.n > 0}
        chosen = sorted(wanted, key=lambda key: (key[2] != END_TO_END, key[1] or 0))
        fitting = set(chosen[: limits.SERIES_POINTS_TOTAL // limits.SERIES_POINTS_MIN])
        points = limits.SERIES_POINTS_TOTAL // max(1, len(fitting))
        self._points = max(limits.SERIES_POINTS_MIN, min(limits.SERIES_POINTS_MAX, points))
        self._wanted, self._fitting = len(wanted), len(fitting)
        self._tasks = list(_tasks(wanted, fitting, self._points, payload_known))
        self._batches = list(_batches(self._tasks))
        # A trial that only the journal has may be a cell's second: then curves need the latencies of both.
        self._pool = readers if all(task.curves for task in self._tasks) else None
        self._begun = self._begin()

    def _begin(self) -> list[Future[list[Made]]]:
        if self._pool is None:
            return []
        try:
            return begin(self._pool, self._campaign, self._batches)
        except BrokenProcessPool:
            self._pool = None
            return []

    def finish(
        self, alphas: Mapping[str, float] | None = None, in_passing: bool = False
    ) -> tuple[Drawn, list[str]]:
        """Waits for everything; also returns the notes on what was thinned or left out.

        `alphas`: for the cells whose curves have a band; `in_passing`: computes it with the curve (see
        `curves.curve`). Notes name each trial with unreadable samples.
        """
        drawn = self._from_processes()
        if drawn is None:
            drawn = Drawn()
            self._draw_by_threads(drawn, alphas or {}, in_passing)
        return drawn, _notes(drawn, self._wanted, self._fitting, self._points)

    def _from_processes(self) -> Drawn | None:
        """The processes' results; None if there are no processes, or if they can't run here."""
        if self._pool is None:
            return None
        drawn = Drawn()
        try:
            for batch, future in zip(self._batches, self._begun, strict=True):
                for task, result in zip(batch, future.result(), strict=True):
                    _add(task, result, drawn)
        except BrokenProcessPool:
            return None
        finally:
            self.close()
        return drawn

    def close(self) -> None:
        """Finishes the few files in progress and cancels the rest."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _draw_by_threads(self, drawn: Drawn, alphas: Mapping[str, float], in_passing: bool) -> None:
        with ThreadPoolExecutor(_threads(self._tasks)) as pool:

            def add_curves(cell: str, latencies: Latencies) -> None:
                room = max(0, limits.CURVES_MAX - len(drawn.curves))
                alpha = alphas.get(cell)
                listed = list(latencies.items())[:room]
                drawn_curves = pool.map(lambda item: curve(cell, item[0], item[1], alpha, in_passing), listed)
                drawn.curves += [drawn_curve for drawn_curve in drawn_curves if drawn_curve is not None]

            cell, latencies = "", Latencies()
            for batch, read_files in _in_order(
                pool, lambda files: read(self._campaign, files), self._batches
            ):
                for task, result in zip(batch, read_files, strict=True):
                    if task.cell != cell:
                        add_curves(cell, latencies)
                        cell, latencies = task.cell, {}
                    for edge, values in result.latencies.items():
                        latencies.setdefault(edge, []).append(values)
                    _add(task, result, drawn)
            add_curves(cell, latencies)


def _tasks(
    wanted: dict[Key, Row], fitting: set[Key], points: int, payload_known: frozenset[str]
) -> Iterator[Task]:
    """The files to read: cells in the order of their rows, trials ascending."""
    files: dict[str, dict[int, list[Row]]] = {}
    for row in wanted.values():
        if row.trial is not None:
            files.setdefault(row.cell, {}).setdefault(row.trial, []).append(row)
    for cell, trials in files.items():
        for trial, rows in sorted(trials.items()):
            series = frozenset(row.edge for row in rows if (cell, trial, row.edge) in fitting)
            edges = tuple(TaskEdge(row.edge, row.valid, row.n) for row in rows)
            is_known, is_only = cell in payload_known, len(trials) == 1
            yield Task(cell, trial, edges, series, points, not is_known, is_only)


def _threads(tasks: Sequence[Task]) -> int:
    largest = max((task.messages for task in tasks), default=0)
    fitting = MESSAGES_AT_ONCE // max(1, largest)
    return max(1, min(cpus(), fitting))


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Small files together, a large one alone."""
    batch: list[Task] = []
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
    pool: ThreadPoolExecutor, function: Callable[[Given], Result], items: Iterable[Given]
) -> Iterator[tuple[Given, Result]]:
    """The function's result for each item, in order; starts no more items ahead than the pool has workers."""
    ahead: deque[tuple[Given, Future[Result]]] = deque()
    for item in items:
        ahead.append((item, pool.submit(function, item)))
        if len(ahead) > pool._max_workers:
            first, future = ahead.popleft()
            yield first, future.result()
    for first, future in ahead:
        yield first, future.result()


def _add(task: Task, result: Made, drawn: Drawn) -> None:
    drawn.curves += result.curves[: max(0, limits.CURVES_MAX - len(drawn.curves))]
    drawn.series += result.series
    drawn.unread += [] if result.unread is None else [result.unread]
    if result.payload_bytes is not None:
        drawn.payload_bytes[task.cell] = max(result.payload_bytes, drawn.payload_bytes.get(task.cell, 0))


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
