# SPDX-License-Identifier: Apache-2.0
"""Intervals of the figures of rows over trials, and the confidence that the bands of curves are made for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from lagometer.report import limits
from lagometer.report.data import Interval, Row
from lagometer.stats.campaign_estimates import campaign_estimates, progress_of_cells, stops_of_cells
from lagometer.stats.confidence import CONFIDENCE, OK, TRIALS_MIN
from lagometer.store.errors import CampaignError
from lagometer.store.format import ESTIMATES
from lagometer.store.reader import Campaign

ALPHA = 1.0 - CONFIDENCE
# Figures over trials that are no quantiles of all messages: their interval is that of a median of trials.
_OF_TRIALS = ("send_lag_p50_ns", "send_lag_p99_ns", "blocked_p50_ns", "blocked_p99_ns", "cpu_per_message_ns")

Key = tuple[str, str]


@dataclass(frozen=True)
class Estimated:
    """What the estimates of one cell's edge say: figures and intervals by the row's fields."""

    figures: Mapping[str, float]
    intervals: Sequence[Interval]
    stopped: str | None


@dataclass
class Known:
    """What is known of a campaign's confidence.

    alphas: of cells with trials enough for a band; empty where bands would cost too much. notes: for people.
    absent: why there are no estimates, where that is not for want of trials.
    """

    table: pl.DataFrame | None = None  # estimates.parquet, as read or made; None where there is none
    estimates: dict[Key, Estimated] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    absent: str | None = None


def known(campaign: Campaign) -> Known:
    """The estimates of a campaign: read, or made of its samples where that can pay."""
    found = Known()
    enough = cells_with_trials(campaign.cells)
    messages = int(campaign.cells.filter(pl.col("valid") & pl.col("cell").is_in(list(enough)))["n"].sum())
    affordable = messages <= limits.ESTIMATED_MESSAGES_MAX
    stored = (campaign.directory / ESTIMATES).is_file()
    if enough and not affordable:
        what, why = ("Bands of curves", "") if stored else ("Bands and intervals", f", without {ESTIMATES}")
        found.notes.append(f"{what} are left out: {messages:,} messages are too many for them here{why}.")
        if not stored:
            found.absent = f"there is no {ESTIMATES}, and {messages:,} messages are too many to make it here"
    try:
        if stored or (enough and affordable) or campaign.imported_from is not None:
            found.table = campaign_estimates(campaign)
            found.estimates = by_edge(found.table)
        if enough and affordable:
            stops = stops_of_cells(progress_of_cells(campaign))
            found.alphas = {cell: stops[cell].alpha if cell in stops else ALPHA for cell in enough}
    except CampaignError as error:
        found.absent = None if found.estimates else str(error)
        found.notes.append(f"There are no intervals: {error}")
    return found


def cells_with_trials(cells: pl.DataFrame) -> set[str]:
    """The cells with trials enough for an interval."""
    valid = cells.filter(pl.col("valid") & (pl.col("n") > 0)).group_by("cell").agg(pl.col("trial").n_unique())
    return set(valid.filter(pl.col("trial") >= TRIALS_MIN)["cell"])


def by_edge(estimates: pl.DataFrame) -> dict[Key, Estimated]:
    """A table of estimates, by cell and edge."""
    of_edge: dict[Key, list[dict[str, Any]]] = {}
    for row in estimates.iter_rows(named=True):
        of_edge.setdefault((row["cell"], row["edge"]), []).append(row)
    found: dict[Key, Estimated] = {}
    for key, rows in of_edge.items():
        figures: dict[str, float] = {}
        intervals: list[Interval] = []
        for row in rows:
            name = f"{row['quantity']}_ns"
            if name not in Row.model_fields:
                continue
            reached = row["status"] == OK
            if reached:
                figures[name] = row["estimate_ns"]
            intervals.append(
                Interval(
                    figure=name,
                    low_ns=row["low_ns"] if reached else None,
                    high_ns=row["high_ns"] if reached else None,
                    needed_trials=row["needed_trials"],
                    needed_messages=row["needed_messages"],
                )
            )
        found[key] = Estimated(figures, intervals, rows[0]["stopped"])
    return found


def with_intervals(summary: Row, trials: Iterable[Row], estimates: Mapping[Key, Estimated]) -> Row:
    """The row over trials with what the estimates know of it, and medians of trials with theirs."""
    good = [row for row in trials if row.valid]
    estimated = estimates.get((summary.cell, summary.edge))
    figures: dict[str, object] = dict(estimated.figures) if estimated is not None else {}
    intervals = list(estimated.intervals) if estimated is not None else []
    for name in _OF_TRIALS:
        ends = median_interval([getattr(row, name) for row in good])
        if ends is not None:
            low, high = ends
            intervals.append(
                Interval(figure=name, low_ns=low, high_ns=high, needed_trials=None, needed_messages=None)
            )
    figures |= {"intervals": intervals, "stopped": estimated.stopped if estimated is not None else None}
    return summary.model_copy(update=figures)


def median_interval(values: Sequence[float | None], alpha: float = ALPHA) -> tuple[float, float] | None:
    """The order statistics between which the median of what values are drawn from lies with probability
    1 - alpha at least, whatever their distribution (the sign test turned round); None where even the
    smallest and the largest don't do, or one is absent.
    """
    present = sorted(value for value in values if value is not None)
    count = len(present)
    if count < len(values):
        return None
    outside, beyond = 0, 0.0  # how many may be left out at each end, and the probability of that
    while 2.0 * (beyond + math.comb(count, outside) * 0.5**count) <= alpha:
        beyond += math.comb(count, outside) * 0.5**count
        outside += 1
    return (present[outside - 1], present[count - outside]) if outside else None
