# SPDX-License-Identifier: Apache-2.0
"""A curve and its band, for too many messages to scan fifty times.

The interval is that of `lagometer.stats.interval.confidence`, on the scale of shares. Its inputs are counted
while the messages are binned for the curve itself: how many of each run of consecutive messages lie below
some limit near each quantile. So the band needs no further pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lagometer.report.samples.selection import SAMPLE, Bins, Numbers, chunks, selected, suitable_bins
from lagometer.stats.interval.confidence import SUPPORT, share_limits

Floats = npt.NDArray[np.float64]

RUNS_MIN = 8  # beyond one per trial, needed to estimate the correlation of messages within a trial
MEDIAN = 0.5


@dataclass(frozen=True)
class _Worth:
    """For some shares (of the messages below some limits): the number of independent messages that would
    determine them as precisely. `within`: considering only the correlation within each trial.
    """

    shares: Floats
    effective: Floats
    within: Floats


def with_band(
    trials: Sequence[Numbers], ranks: Numbers, shares: Sequence[float], alpha: float
) -> tuple[Numbers, list[tuple[float, int, int]]]:
    """The values at these ranks in all trials together (rank 1 is the smallest), and the band:
    share, low, high at each of `shares` that the samples support.
    """
    filled = [trial for trial in trials if len(trial)]
    bins = suitable_bins(filled)
    limits = _limits(filled, bins, shares)
    counts = np.zeros(bins.last + 1, dtype=np.int64)
    below: list[Numbers] = []  # for each trial: a row per run, a column per limit
    for trial in filled:
        runs = []
        for run in chunks([trial]):
            run_counts = np.bincount(bins.of(run), minlength=bins.last + 1)
            counts += run_counts
            runs.append(np.cumsum(np.add.reduceat(run_counts, limits)))
        below.append(np.array(runs))
    worth = _worth(below)
    share_intervals = _share_limits(worth, shares, sum(map(len, filled)), len(filled), alpha)
    ends = np.array(
        [_ranks(interval[1:], int(counts.sum())) for interval in share_intervals], dtype=np.int64
    ).reshape(-1)
    values = selected(filled, bins, counts, np.concatenate([ranks, ends]))
    lows, highs = values[len(ranks) :: 2].tolist(), values[len(ranks) + 1 :: 2].tolist()
    band = [(share, low, high) for (share, _, _), low, high in zip(share_intervals, lows, highs, strict=True)]
    return values[: len(ranks)], band


def _limits(trials: Sequence[Numbers], bins: Bins, shares: Sequence[float]) -> Numbers:
    """The bins up to which messages are counted, the first being 0: near the quantiles, from a sample."""
    step = max(1, sum(map(len, trials)) // SAMPLE)
    sample = np.sort(np.concatenate([trial[::step] for trial in trials]))
    near = sample[(np.asarray(shares) * (len(sample) - 1)).astype(np.int64)]
    return np.unique(np.concatenate([[0], np.clip(bins.of(near) + 1, 1, bins.last)]))


def _worth(below: Sequence[Numbers]) -> _Worth:
    """below: per trial, cumulative counts of its runs; the last column is all of a run's messages."""
    totals = np.array([trial.sum(axis=0) for trial in below], dtype=np.float64)
    sizes, overall = totals[:, -1:], float(totals[:, -1].sum())
    shares = totals.sum(axis=0) / overall
    between = len(below) / (len(below) - 1) * np.square(totals - shares * sizes).sum(axis=0) / overall**2
    within = np.zeros_like(between)
    if sum(len(trial) - 1 for trial in below) >= RUNS_MIN:
        for trial, total in zip(below, totals, strict=True):
            if len(trial) > 1:
                deviations = trial - total / total[-1] * trial[:, -1:]
                within += len(trial) / (len(trial) - 1) * np.square(deviations).sum(axis=0) / overall**2
    known = (shares > 0.0) & (shares < 1.0)
    single = (shares * (1.0 - shares))[known]
    within = np.maximum(within[known], single / overall)
    return _Worth(shares[known], single / np.maximum(between[known], within), single / within)


def _share_limits(
    worth: _Worth, shares: Sequence[float], messages: int, trials: int, alpha: float
) -> list[tuple[float, float, float]]:
    """Each supported share, and the interval that contains the true one."""
    intervals: list[tuple[float, float, float]] = []
    if not len(worth.shares):
        return intervals
    at_median = float(worth.within[np.abs(worth.shares - MEDIAN).argmin()])
    for share in shares:
        effective = float(worth.effective[np.abs(worth.shares - share).argmin()])
        low, high = share_limits(share, effective, messages, trials, alpha)
        inside = low * messages >= 1.0 and high * messages <= messages - 1.0
        if share == MEDIAN or (inside and at_median * min(share, 1.0 - share) >= SUPPORT):
            intervals.append((share, low, high))
    return intervals


def _ranks(shares: Sequence[float], messages: int) -> list[int]:
    return [min(max(int(np.ceil(share * messages - 1e-9)), 1), messages) for share in shares]
