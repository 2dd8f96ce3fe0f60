# SPDX-License-Identifier: Apache-2.0
"""A report's data from one file of samples: latencies or curves, and series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from lagometer.report.samples.curves import curve
from lagometer.report.samples.data import Curve, Series
from lagometer.report.samples.reading import EdgeRows, Wanted, read_files
from lagometer.report.samples.series import edge_series
from lagometer.store.errors import CampaignError
from lagometer.store.reader import Campaign


@dataclass(frozen=True)
class TaskEdge:
    """An edge of a file: whether its trial is valid, and roughly how many of its messages arrived."""

    name: str
    valid: bool
    messages: int


@dataclass(frozen=True)
class Task:
    """One file of samples, and what to compute from it."""

    cell: str
    trial: int
    edges: Sequence[TaskEdge]
    series: frozenset[str]  # edges whose series is drawn
    points: int
    payload: bool  # whether the cell's payload must be taken from the samples
    curves: bool  # whether it is its cell's only file, so its curves are the cell's

    @property
    def messages(self) -> int:
        """The approximate number of messages in the file."""
        return sum(edge.messages for edge in self.edges)


@dataclass
class Made:
    """The result of a task."""

    latencies: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)  # by edge, of a valid trial
    curves: list[Curve] = field(default_factory=list)  # instead of latencies, if the task requests them
    series: list[Series] = field(default_factory=list)
    payload_bytes: int | None = None
    unread: str | None = None


def read(campaign: Campaign, batch: Sequence[Task]) -> list[Made]:
    """The result for each of these files. [thread: any]"""
    wanted = [Wanted(task.cell, task.trial, bool(task.series), task.payload) for task in batch]
    return [
        _make(task, samples, edges)
        for task, (samples, edges) in zip(batch, read_files(campaign, wanted), strict=True)
    ]


def _make(task: Task, samples: pl.DataFrame, edges: dict[str, EdgeRows] | CampaignError) -> Made:
    """The result for a file: latencies of the valid trial's edges, and their series."""
    result = Made()
    if isinstance(edges, CampaignError):
        result.unread = f"The samples of {task.cell}, trial {task.trial}, could not be read: {edges}"
        return result
    if not edges:
        return result
    if task.payload:
        largest_bytes = samples["payload_bytes"].max()
        result.payload_bytes = largest_bytes if isinstance(largest_bytes, int) else None
    origin_ns = min(int(rows.publish_ns[0]) for rows in edges.values())
    for edge in task.edges:
        if edge.name not in edges:
            continue
        edge_rows = edges[edge.name]
        if edge.valid:
            _add_latencies(task, edge.name, edge_rows.latencies, result)
        if edge.name in task.series:
            series = edge_series(task.cell, task.trial, edge.name, edge_rows, origin_ns, task.points)
            result.series += [] if series is None else [series]
    return result


def _add_latencies(task: Task, edge: str, latencies: npt.NDArray[np.int64], result: Made) -> None:
    """Keeps latencies until the cell is done, or makes its curve at once: one trial has no band."""
    if not task.curves:
        result.latencies[edge] = latencies
        return
    edge_curve = curve(task.cell, edge, [latencies])
    result.curves += [] if edge_curve is None else [edge_curve]
