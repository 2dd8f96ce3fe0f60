# SPDX-License-Identifier: Apache-2.0
"""Intervals of the figures of rows over trials, and the confidence that the bands of curves are made for."""

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

ALPHA = 1.0 - CONFIDENCE
# Figures over trials that are no quantiles of all messages: their interval is that of a median of trials.
_OF_TRIALS = (
    *("send_lag_p50_ns", "send_lag_p99_ns", "blocked_p50_ns", "blocked_p99_ns", "wake_p50_ns"),
    *("cpu_per_message_ns", "rate_achieved_hz"),
)

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

    alphas: of cells with trials enough for a band. affordable: whether their messages may be looked at again
    and again. notes: for people. absent: why there are no estimates, where that is not for want of trials.
    """

    table: pl.DataFrame | None = None  # estimates.parquet, as read or made; None where there is none
    estimates: dict[Key, Estimated] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)
    affordable: bool = True
    notes: list[str] = field(default_factory=list)
    absent: str | None = None


def known(campaign: Campaign) -> Known:
    """The estimates of a campaign: read, or made of its samples where that can pay."""
    found = Known()
    enough = cells_with_trials(campaign.cells)
    messages = int(campaign.cells.filter(pl.col("valid") & pl.col("cell").is_in(list(enough)))["n"].sum())
    found.affordable = affordable = messages <= limits.ESTIMATED_MESSAGES_MAX
    stored = (campaign.directory / ESTIMATES).is_file()
    if enough and not affordable and not stored:
        found.absent = f"there is no {ESTIMATES}, and {messages:,} messages are too many to make it here"
        found.notes.append(f"Intervals of quantiles are left out: {found.absent}.")
    try:
        if stored or (enough and affordable) or campaign.imported_from is not None:
            found.table = campaign_estimates(campaign)
            found.estimates = by_edge(found.table)
        if not affordable:
            found.alphas = dict.fromkeys(enough, safe_alpha(campaign))
        elif enough:
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
    shown = frozenset(Row.model_fields)  # asked for once: tens of thousands of estimates are not rare
    for key, rows in of_edge.items():
        figures: dict[str, float] = {}
        intervals: list[Interval] = []
        for row in rows:
            name = f"{row['quantity']}_ns"
            if name not in shown:
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
        found[key] = Estimated(figures, intervals, rows[0]["stopped"])
    return found


def with_intervals(summary: Row, trials: Iterable[Row], estimates: Mapping[Key, Estimated]) -> Row:
    """The row over trials with what the estimates know of it, and medians of trials with theirs."""
    good = [row for row in trials if row.valid]
    estimated = estimates.get((summary.cell, summary.edge))
    figures: dict[str, object] = dict(estimated.figures) if estimated is not None else {}
    intervals = list(estimated.intervals) if estimated is not None else []
    if len(good) >= TRIALS_MIN:  # fewer have none
        ends = {name: median_interval([getattr(row, name) for row in good]) for name in _OF_TRIALS}
        ends["lost_share"] = loss_share_interval([(row.lost, row.sent) for row in good])
        intervals += [between(name, *both) for name, both in ends.items() if both is not None]
    figures |= {"intervals": intervals, "stopped": estimated.stopped if estimated is not None else None}
    return summary.model_copy(update=figures)


def between(figure: str, low: float, high: float) -> Interval:
    """The interval of a figure that has one."""
    return Interval(figure=figure, low=low, high=high, needed_trials=None, needed_messages=None)


def ends_of(row: Row, figure: str) -> tuple[float, float] | None:
    """The ends of a figure's interval, if it has one."""
    known = next((each for each in row.intervals if each.figure == figure), None)
    return None if known is None or known.low is None or known.high is None else (known.low, known.high)


def ratio_interval(
    value: tuple[float, float] | None, floor: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The interval of a ratio from those of its parts: the lowest over the highest, and the other way round.

    Wider than it need be: both parts would have to be off at once, in opposite directions
    (docs/methodology/intervals.md).
    """
    if value is None or floor is None or floor[0] <= 0.0:
        return None
    return value[0] / floor[1], value[1] / floor[0]
