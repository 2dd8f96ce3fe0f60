# SPDX-License-Identifier: Apache-2.0
"""Whether a long trial confirms the short ones: a check on the bias of short trials."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from lagometer.stats.interval.confidence import OK
from lagometer.stats.interval.medians import TrialMedian, median_of_trials
from lagometer.store import format as form
from lagometer.store.reader import Campaign

QUANTILES = ("p50", "p99")
# Where a long trial's figure lies: inside the interval of the short trials' estimate; outside it, but within
# the range of the short trials' own figures; or beyond all of them.
INSIDE, OUTSIDE, BEYOND = "inside", "outside", "beyond"

Estimate = tuple[float, float, float]  # the estimate and the ends of its interval


@dataclass(frozen=True)
class LongFigure:
    """One quantile of a long trial next to the short ones, in ns.

    short_ns: the estimate from the short trials; without an interval, the median of their figures. place:
    INSIDE, OUTSIDE or BEYOND; None if there is no interval to compare with, or no figure.
    """

    long_ns: float | None
    short_ns: float | None
    low_ns: float | None
    high_ns: float | None
    place: str | None


@dataclass(frozen=True)
class LongCheck:
    """A cell's valid long trial next to its short ones, end to end; figures: by quantile (`p50`, `p99`)."""

    cell: str
    n: int
    figures: Mapping[str, LongFigure]
    cpu_per_message_ns: float | None
    short_cpu_per_message: TrialMedian

    def remarks(self) -> Iterator[str]:
        """Warnings: one sentence for each figure outside the short trials' interval."""
        for name, figure in self.figures.items():
            if figure.place not in (OUTSIDE, BEYOND) or figure.long_ns is None or not figure.short_ns:
                continue
            assert figure.high_ns is not None, "there is a place, so there is an interval"
            side = "above" if figure.long_ns > figure.high_ns else "below"
            position = (
                f"and {side} every single trial"
                if figure.place == BEYOND
                else "but within the range of the single trials"
            )
            change = 100.0 * (figure.long_ns / figure.short_ns - 1.0)
            by = f"{change:+.1f} % of their estimate"
            yield f"{name} lies {side} the short trials' interval ({by}), {position}"


def known_of(estimates: pl.DataFrame) -> dict[tuple[str, str], Estimate]:
    """The end-to-end estimates that have an interval, by cell and quantile."""
    chosen = estimates.filter((pl.col("edge") == form.END_TO_END) & (pl.col("status") == OK))
    names = {f"latency_{name}": name for name in QUANTILES}
    return {
        (row["cell"], names[row["quantity"]]): (row["estimate_ns"], row["low_ns"], row["high_ns"])
        for row in chosen.iter_rows(named=True)
        if row["quantity"] in names
    }


def long_checks(campaign: Campaign, known: Mapping[tuple[str, str], Estimate]) -> list[LongCheck]:
    """The campaign's valid long trials next to its short ones. known: the result of `known_of`."""
    part = campaign.long_trials
    if part is None:
        return []
    end_to_end = (pl.col("edge") == form.END_TO_END) & pl.col("valid")
    checks = []
    for row in part.cells.filter(end_to_end).iter_rows(named=True):
        short = campaign.cells.filter((pl.col("cell") == row["cell"]) & end_to_end)
        checks.append(_check(row, short, known))
    return checks


def _check(
    row: Mapping[str, Any], short: pl.DataFrame, known: Mapping[tuple[str, str], Estimate]
) -> LongCheck:
    figures = {}
    for name in QUANTILES:
        column = f"latency_{name}_ns"
        figures[name] = _figure(row[column], short[column].to_list(), known.get((row["cell"], name)))
    return LongCheck(
        cell=row["cell"],
        n=row["n"],
        figures=figures,
        cpu_per_message_ns=row["cpu_per_message_ns"],
        short_cpu_per_message=median_of_trials(short["cpu_per_message_ns"].to_list()),
    )


def _figure(long_ns: float | None, singles: Sequence[float | None], known: Estimate | None) -> LongFigure:
    """singles: the short trials' own figures."""
    present = [value for value in singles if value is not None]
    if known is None:
        middle = statistics.median(present) if present and len(present) == len(singles) else None
        return LongFigure(long_ns, middle, None, None, None)
    estimate, low, high = known
    place = None
    if long_ns is not None:
        place = INSIDE if low <= long_ns <= high else OUTSIDE
        if place == OUTSIDE and present and not min(present) <= long_ns <= max(present):
            place = BEYOND
    return LongFigure(long_ns, estimate, low, high, place)
