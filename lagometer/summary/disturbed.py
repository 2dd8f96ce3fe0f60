# SPDX-License-Identifier: Apache-2.0
"""Figures of cells with and without the trials that something disturbed: how much the disturbance matters."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from lagometer.stats.cell.campaign_estimates import estimates_without_noise
from lagometer.stats.cell.preempted import Preempted, preempted_trials
from lagometer.stats.interval.medians import median_interval
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.data import PreemptedTrial, Preemption, Row, WithoutNoise
from lagometer.summary.intervals import Estimated, Key, Known, by_edge
from lagometer.summary.rows import group_by_edge, over_trials

RANKED_MAX = 10
HALVED_MIN = 4  # trials of a cell whose quieter half is looked at
FIGURES = ("latency_p50_ns", "cpu_per_message_ns", "latency_p99_ns")

Figure = tuple[float | None, float | None, float | None]  # with the ends of its interval


def without_noise(campaign: Campaign, trial_rows: Sequence[Row], known: Known) -> list[WithoutNoise]:
    """Of each cell with trials of both kinds, p50, its cost in CPU time and p99 end to end with and without
    the disturbed ones.
    """
    quiet_estimates = _quiet_estimates(campaign, known)
    found: list[WithoutNoise] = []
    for key, group in group_by_edge(trial_rows).items():
        good = [row for row in group if row.valid]
        quiet = [row for row in good if not row.trials_noisy]
        if key[1] == END_TO_END and 0 < len(quiet) < len(good):
            found += _of_cell(key, good, quiet, known.estimates, quiet_estimates)
    return found


def _quiet_estimates(campaign: Campaign, known: Known) -> Mapping[Key, Estimated]:
    """Empty where the samples are too many for it, or can't be read; `known` has said so."""
    if not (known.affordable and known.alphas):
        return {}
    try:
        return by_edge(estimates_without_noise(campaign, known.alphas))
    except CampaignError:
        return {}


def _of_cell(
    key: Key,
    good: Sequence[Row],
    quiet: Sequence[Row],
    all_estimates: Mapping[Key, Estimated],
    quiet_estimates: Mapping[Key, Estimated],
) -> Iterator[WithoutNoise]:
    both = all_estimates.get(key), quiet_estimates.get(key)
    for figure in FIGURES:
        # Like with like: estimates on both sides, else medians of the trials' figures on both.
        found = [_estimate(each, figure) for each in both]
        estimated = all(value is not None for value, _, _ in found)
        if not estimated:
            found = [_median(part, figure) for part in (good, quiet)]
        (all_ns, all_low_ns, all_high_ns), (quiet_ns, quiet_low_ns, quiet_high_ns) = found
        yield WithoutNoise(
            cell=key[0],
            figure=figure,
            of="messages" if estimated else "trials",
            trials=len(good),
            trials_noisy=len(good) - len(quiet),
            all_ns=all_ns,
            all_low_ns=all_low_ns,
            all_high_ns=all_high_ns,
            quiet_ns=quiet_ns,
            quiet_low_ns=quiet_low_ns,
            quiet_high_ns=quiet_high_ns,
        )


def _estimate(estimated: Estimated | None, figure: str) -> Figure:
    if estimated is None or figure not in estimated.figures:
        return None, None, None
    known = next(each for each in estimated.intervals if each.figure == figure)
    return estimated.figures[figure], known.low, known.high


def _median(rows: Sequence[Row], figure: str) -> Figure:
    value = getattr(over_trials(rows), figure)
    low, high = median_interval([getattr(row, figure) for row in rows]) or (None, None)
    return value, low, high


def preemption(campaign: Campaign, trial_rows: Sequence[Row]) -> Preemption | None:
    """How much preemption there was, and how much it moved the figures; None where there was hardly any."""
    found = preempted_trials(campaign.cells)
    if not any(each.above for each in found):
        return None
    rows = {
        (row.cell, row.trial): row
        for row in trial_rows
        if row.valid and row.edge == END_TO_END and row.trial is not None
    }
    compared = _quieter_halves(found, rows)
    return Preemption(
        trials=len(found),
        trials_above=sum(each.above for each in found),
        trials_outstanding=sum(each.stands_out for each in found),
        per_message_median=statistics.median(each.per_message for each in found),
        cells_compared=len(compared["latency_p50_ns"]),
        p50_change=_median_change(compared["latency_p50_ns"]),
        p99_change=_median_change(compared["latency_p99_ns"]),
        ranked=[_ranked(each, rows) for each in found[:RANKED_MAX]],
    )


def _quieter_halves(
    found: Sequence[Preempted], rows: Mapping[tuple[str, int], Row]
) -> dict[str, list[float]]:
    """Of each cell how a figure's median changes where only the half with fewer switches counts."""
    by_cell: dict[str, list[tuple[float, Row]]] = {}
    for each in found:
        row = rows.get((each.cell, each.trial))
        if row is not None:
            by_cell.setdefault(each.cell, []).append((each.per_message, row))
    changes: dict[str, list[float]] = {"latency_p50_ns": [], "latency_p99_ns": []}
    for trials in by_cell.values():
        ordered = [row for _, row in sorted(trials, key=lambda each: each[0])]
        for figure, ratios in changes.items():
            values = [getattr(row, figure) for row in ordered]
            if len(values) >= HALVED_MIN and None not in values and statistics.median(values) > 0:
                quiet = statistics.median(values[: len(values) // 2])
                ratios.append(quiet / statistics.median(values) - 1.0)
    return changes


def _median_change(changes: Sequence[float]) -> float | None:
    return statistics.median(changes) if changes else None


def _ranked(each: Preempted, rows: Mapping[tuple[str, int], Row]) -> PreemptedTrial:
    row = rows.get((each.cell, each.trial))
    of_cell = [
        other.latency_p50_ns
        for (cell, _), other in rows.items()
        if cell == each.cell and other.latency_p50_ns is not None
    ]
    return PreemptedTrial(
        cell=each.cell,
        trial=each.trial,
        per_message=each.per_message,
        times=each.times,
        stands_out=each.stands_out,
        latency_p50_ns=row.latency_p50_ns if row is not None else None,
        cell_p50_ns=statistics.median(of_cell) if of_cell else None,
    )
