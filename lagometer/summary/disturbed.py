# SPDX-License-Identifier: Apache-2.0
"""Figures of cells with and without the trials that something disturbed: how much the disturbance matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lagometer.stats.cell.campaign_estimates import estimates_without_noise
from lagometer.stats.interval.medians import median_interval
from lagometer.store.errors import CampaignError
from lagometer.store.format import END_TO_END
from lagometer.store.reader import Campaign
from lagometer.summary.data import Row, WithoutNoise
from lagometer.summary.intervals import Estimated, Key, Known, by_edge
from lagometer.summary.rows import group_by_edge, over_trials

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
