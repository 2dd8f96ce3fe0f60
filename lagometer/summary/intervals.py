# SPDX-License-Identifier: Apache-2.0
"""Intervals for the figures of rows over trials, and the confidence of the bands of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from lagometer.stats.cell.campaign_estimates import (
    campaign_estimates,
    progress_of_cells,
    safe_alpha,
    stops_of_cells,
)
from lagometer.stats.interval.confidence import CONFIDENCE, OK, TRIALS_MIN
from lagometer.stats.interval.loss_share import loss_share_interval
from lagometer.stats.interval.medians import median_interval
from lagometer.store.errors import CampaignError
from lagometer.store.format import ESTIMATES
from lagometer.store.reader import Campaign
from lagometer.summary import limits
from lagometer.summary.data import Interval, Row
from lagometer.summary.rows import COUNTS, of_missing

ALPHA = 1.0 - CONFIDENCE
# Figures over trials that are not quantiles of all messages: their interval is that of a median of trials.
_OF_TRIALS = (
    *("send_lag_p50_ns", "send_lag_p99_ns", "blocked_p50_ns", "blocked_p99_ns", "wake_p50_ns"),
    *("cpu_per_message_ns", "rate_achieved_hz"),
)
_OF_ESTIMATES = (
    *("cell", "edge", "quantity", "status", "estimate_ns", "low_ns", "high_ns"),
    *("needed_trials", "needed_messages", "stopped"),
)

Key = tuple[str, str]


@dataclass(frozen=True)
class Estimated:
    """The estimates for one cell's edge: figures and intervals by the row's fields."""

    figures: Mapping[str, float]
    intervals: Sequence[Interval]
    stopped: str | None


@dataclass
class Known:
    """What is known about a campaign's confidence.

    alphas: of cells with enough trials for a band. affordable: whether their messages may be read repeatedly.
    notes: for users. absent: why there are no estimates, if the reason is not too few trials.
    """

    table: pl.DataFrame | None = None  # estimates.parquet, as read or computed; None if there is none
    estimates: dict[Key, Estimated] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)
    affordable: bool = True
    notes: list[str] = field(default_factory=list)
    absent: str | None = None


def known(campaign: Campaign) -> Known:
    """The estimates of a campaign: read, or computed from its samples if that is affordable."""
    confidence = Known()
    enough = cells_with_trials(campaign.cells)
    messages = int(campaign.cells.filter(pl.col("valid") & pl.col("cell").is_in(list(enough)))["n"].sum())
    confidence.affordable = affordable = messages <= limits.ESTIMATED_MESSAGES_MAX
    stored = (campaign.directory / ESTIMATES).is_file()
    if enough and not affordable and not stored:
        confidence.absent = f"there is no {ESTIMATES}, and {messages:,} messages are too many to make it here"
        confidence.notes.append(f"Intervals of quantiles are left out: {confidence.absent}.")
    try:
        if stored or (enough and affordable) or campaign.imported_from is not None:
            confidence.table = campaign_estimates(campaign)
            confidence.estimates = by_edge(confidence.table)
        if not affordable:
            confidence.alphas = dict.fromkeys(enough, safe_alpha(campaign))
        elif enough:
            stops = stops_of_cells(progress_of_cells(campaign))
            confidence.alphas = {cell: stops[cell].alpha if cell in stops else ALPHA for cell in enough}
    except CampaignError as error:
        confidence.absent = None if confidence.estimates else str(error)
        confidence.notes.append(f"There are no intervals: {error}")
    return confidence


def cells_with_trials(cells: pl.DataFrame) -> set[str]:
    """The cells with enough trials for an interval."""
    valid = cells.filter(pl.col("valid") & (pl.col("n") > 0)).group_by("cell").agg(pl.col("trial").n_unique())
    return set(valid.filter(pl.col("trial") >= TRIALS_MIN)["cell"])


def by_edge(estimates: pl.DataFrame) -> dict[Key, Estimated]:
    """A table of estimates, by cell and edge."""
    rows_by_edge: dict[Key, list[dict[str, Any]]] = {}
    for row in estimates.select(_OF_ESTIMATES).iter_rows(named=True):
        rows_by_edge.setdefault((row["cell"], row["edge"]), []).append(row)
    estimated: dict[Key, Estimated] = {}
    row_fields = frozenset(Row.model_fields)  # evaluated once: there may be tens of thousands of estimates
    for key, rows in rows_by_edge.items():
        figures: dict[str, float] = {}
        intervals: list[Interval] = []
        for row in rows:
            name = f"{row['quantity']}_ns"
            if name not in row_fields:
                continue
            reached = row["status"] == OK
            if reached:
                figures[name] = row["estimate_ns"]
            intervals.append(
                Interval(
                    figure=name,
                    low=row["low_ns"] if reached else None,
                    high=row["high_ns"] if reached else None,
                    needed_trials=row["needed_trials"],
                    needed_messages=row["needed_messages"],
                )
            )
        estimated[key] = Estimated(figures, intervals, rows[0]["stopped"])
    return estimated


def with_intervals(summary: Row, trials: Iterable[Row], estimates: Mapping[Key, Estimated]) -> Row:
    """The row over trials with its estimates, and medians of trials with their intervals."""
    valid = [row for row in trials if row.valid]
    estimated = estimates.get((summary.cell, summary.edge))
    figures: dict[str, object] = dict(estimated.figures) if estimated is not None else {}
    intervals = list(estimated.intervals) if estimated is not None else []
    if len(valid) >= TRIALS_MIN:  # fewer have none
        ends = {name: median_interval([getattr(row, name) for row in valid]) for name in _OF_TRIALS}
        ends["lost_share"] = loss_share_interval(
            [of_missing(row.model_dump(include=COUNTS)) for row in valid]
        )
        intervals += [between(name, *interval) for name, interval in ends.items() if interval is not None]
    figures |= {"intervals": intervals, "stopped": estimated.stopped if estimated is not None else None}
    return summary.model_copy(update=figures)


def between(figure: str, low: float, high: float) -> Interval:
    """The interval of a figure that has one."""
    return Interval(figure=figure, low=low, high=high, needed_trials=None, needed_messages=None)


def ends_of(row: Row, figure: str) -> tuple[float, float] | None:
    """The ends of a figure's interval, if it has one."""
    interval = next((candidate for candidate in row.intervals if candidate.figure == figure), None)
    return (
        None
        if interval is None or interval.low is None or interval.high is None
        else (interval.low, interval.high)
    )


def ratio_interval(
    value: tuple[float, float] | None, floor: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The interval of a ratio from those of its parts: the lowest over the highest, and vice versa.

    Wider than necessary: both parts would have to be off at once, in opposite directions
    (docs/methodology/intervals.md).
    """
    if value is None or floor is None or floor[0] <= 0.0:
        return None
    return value[0] / floor[1], value[1] / floor[0]
