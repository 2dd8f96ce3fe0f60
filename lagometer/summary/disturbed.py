# SPDX-License-Identifier: Apache-2.0
"""Figures of cells with and without the trials that something disturbed: how much the disturbance matters."""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
HALVED_MIN = 4  # cells need this many trials for a look at the quieter half
FIGURES = ("latency_p50_ns", "cpu_per_message_ns", "latency_p99_ns")
_TAKEN = re.compile(r"(?:others|stolen): (\d+(?:\.\d+)?) ?% .*")  # as lagometer.stats.verdict.noise writes it

Figure = tuple[float | None, float | None, float | None]  # and the ends of its interval


@dataclass(frozen=True)
class Noisy:
    """How many of the valid trials something disturbed, and in how many of them each cause occurred."""

    trials: int
    trials_noisy: int
    causes: Mapping[str, int]


def noisy_trials(rows: Iterable[Row]) -> Noisy:
    """Counts the disturbed trials among a summary's `rows`, or among those of some cells."""
    valid = [row for row in rows if row.valid]
    singly = {row.cell for row in valid if row.trial is not None}
    # The row of a cell's only trial is the one over its trials.
    trials = {(row.cell, row.trial): row for row in valid if row.trial is not None or row.cell not in singly}
    noisy = [row for row in trials.values() if row.trials_noisy]
    causes = Counter(word for row in noisy for word in {text.partition(":")[0] for text in row.noise})
    return Noisy(len(trials), len(noisy), dict(sorted(causes.items())))


def without_noise(campaign: Campaign, trial_rows: Sequence[Row], known: Known) -> list[WithoutNoise]:
    """p50, CPU cost and p99 end to end with and without disturbed trials, for each cell with both kinds.

    Of a cell without quiet trials, the half that was disturbed least stands for them.
    """
    quiet_estimates = _quiet_estimates(campaign, known)
    results: list[WithoutNoise] = []
    for key, group in group_by_edge(trial_rows).items():
        valid = [row for row in group if row.valid]
        quiet = [row for row in valid if not row.trials_noisy]
        if key[1] != END_TO_END:
            continue
        if 0 < len(quiet) < len(valid):
            results += _of_cell(key, valid, quiet, known.estimates, quiet_estimates)
        elif valid and not quiet:
            results += _of_halves(key, valid)
    return results


def _of_halves(key: Key, valid: Sequence[Row]) -> Iterator[WithoutNoise]:
    """Nothing if there are too few trials, or if the amounts of what disturbed them don't tell them apart."""
    ordered = sorted(valid, key=_taken_share)
    half = ordered[: len(ordered) // 2]
    if len(ordered) < HALVED_MIN or not _taken_share(half[-1]) < _taken_share(ordered[-1]):
        return
    for figure in FIGURES:
        both = _median(valid, figure), _median(half, figure)
        yield _compared(key, figure, "half", (len(valid), len(valid)), *both)


def _taken_share(row: Row) -> float:
    """How much of the CPUs' time others had during a trial, in percent; infinite if that is not what
    disturbed it."""
    amounts = [_TAKEN.fullmatch(text) for text in row.noise]
    if not amounts or None in amounts:
        return math.inf
    return sum(float(amount[1]) for amount in amounts if amount is not None)


def _quiet_estimates(campaign: Campaign, known: Known) -> Mapping[Key, Estimated]:
    """Empty if there are too many samples, or if they can't be read; `known` has already reported that."""
    if not (known.affordable and known.alphas):
        return {}
    try:
        return by_edge(estimates_without_noise(campaign, known.alphas))
    except CampaignError:
        return {}


def _of_cell(
    key: Key,
    valid: Sequence[Row],
    quiet: Sequence[Row],
    all_estimates: Mapping[Key, Estimated],
    quiet_estimates: Mapping[Key, Estimated],
) -> Iterator[WithoutNoise]:
    both = all_estimates.get(key), quiet_estimates.get(key)
    for figure in FIGURES:
        # Compare like with like: estimates on both sides, otherwise medians of the trials' figures on both.
        values = [_estimate(estimates, figure) for estimates in both]
        estimated = all(value is not None for value, _, _ in values)
        if not estimated:
            values = [_median(part, figure) for part in (valid, quiet)]
        of = "messages" if estimated else "trials"
        yield _compared(key, figure, of, (len(valid), len(valid) - len(quiet)), *values)


def _compared(
    key: Key, figure: str, of: str, trials: tuple[int, int], all_trials: Figure, quiet: Figure
) -> WithoutNoise:
    """`trials`: how many there are, and how many of them are noisy."""
    (all_ns, all_low_ns, all_high_ns), (quiet_ns, quiet_low_ns, quiet_high_ns) = all_trials, quiet
    return WithoutNoise(
        cell=key[0],
        figure=figure,
        of=of,
        trials=trials[0],
        trials_noisy=trials[1],
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
    interval = next(candidate for candidate in estimated.intervals if candidate.figure == figure)
    return estimated.figures[figure], interval.low, interval.high


def _median(rows: Sequence[Row], figure: str) -> Figure:
    value = getattr(over_trials(rows), figure)
    low, high = median_interval([getattr(row, figure) for row in rows]) or (None, None)
    return value, low, high


def preemption(campaign: Campaign, trial_rows: Sequence[Row]) -> Preemption | None:
    """How much preemption there was, and how much it moved the figures; None if there was hardly any."""
    trials = preempted_trials(campaign.cells)
    if not any(trial.above for trial in trials):
        return None
    rows = {
        (row.cell, row.trial): row
        for row in trial_rows
        if row.valid and row.edge == END_TO_END and row.trial is not None
    }
    changes = _quieter_halves(trials, rows)
    return Preemption(
        trials=len(trials),
        trials_above=sum(trial.above for trial in trials),
        trials_outstanding=sum(trial.stands_out for trial in trials),
        per_message_median=statistics.median(trial.per_message for trial in trials),
        cells_compared=len(changes["latency_p50_ns"]),
        p50_change=_median_change(changes["latency_p50_ns"]),
        p99_change=_median_change(changes["latency_p99_ns"]),
        ranked=[_ranked(trial, rows) for trial in trials[:RANKED_MAX]],
    )


def _quieter_halves(
    preempted: Sequence[Preempted], rows: Mapping[tuple[str, int], Row]
) -> dict[str, list[float]]:
    """For each cell, how a figure's median changes if only the half with fewer switches counts."""
    by_cell: dict[str, list[tuple[float, Row]]] = {}
    for trial in preempted:
        row = rows.get((trial.cell, trial.trial))
        if row is not None:
            by_cell.setdefault(trial.cell, []).append((trial.per_message, row))
    changes: dict[str, list[float]] = {"latency_p50_ns": [], "latency_p99_ns": []}
    for trials in by_cell.values():
        ordered = [row for _, row in sorted(trials, key=lambda ranked: ranked[0])]
        for figure, ratios in changes.items():
            values = [getattr(row, figure) for row in ordered]
            if len(values) >= HALVED_MIN and None not in values and statistics.median(values) > 0:
                quiet = statistics.median(values[: len(values) // 2])
                ratios.append(quiet / statistics.median(values) - 1.0)
    return changes


def _median_change(changes: Sequence[float]) -> float | None:
    return statistics.median(changes) if changes else None


def _ranked(trial: Preempted, rows: Mapping[tuple[str, int], Row]) -> PreemptedTrial:
    row = rows.get((trial.cell, trial.trial))
    p50s_ns = [
        other.latency_p50_ns
        for (cell, _), other in rows.items()
        if cell == trial.cell and other.latency_p50_ns is not None
    ]
    return PreemptedTrial(
        cell=trial.cell,
        trial=trial.trial,
        per_message=trial.per_message,
        times=trial.times,
        stands_out=trial.stands_out,
        latency_p50_ns=row.latency_p50_ns if row is not None else None,
        cell_p50_ns=statistics.median(p50s_ns) if p50s_ns else None,
    )
