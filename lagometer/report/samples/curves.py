# SPDX-License-Identifier: Apache-2.0
"""Percentile curves: quantiles on a grid that is even on the scale of nines, up to the last one that the
samples support.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lagometer.report.samples.bands import with_band
from lagometer.report.samples.data import Curve
from lagometer.report.samples.selection import PARTITIONED_MAX, order_statistics
from lagometer.stats.interval.confidence import OK, SUPPORT, TRIALS_MIN, Pool

_STEPS_PER_NINE = 20
# The points of the band, with straight lines between them. In thousandths, as in estimates.
_BAND_PERMILLE = (
    *(20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500, 550, 600, 650, 700, 750, 800),
    *(840, 870, 900, 920, 940, 950, 960, 970, 980, 985, 990, 992, 994, 996, 997, 998, 999),
)
UNEVEN = 1.01  # most over fewest messages of a trial: below that, weights move nothing that can be seen
_ALWAYS = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@functools.lru_cache(maxsize=64)  # edges of a trial mostly delivered the same number
def supported_probabilities(count: int) -> npt.NDArray[np.float64]:
    """Probabilities whose order statistic has at least 10 of `count` samples beyond it; empty below 21
    samples.
    """
    first, last = (SUPPORT + 1) / count, (count - SUPPORT) / count
    if first > last:
        return np.empty(0)
    nines = np.arange(0, -np.log10(1 - last) + 1e-9, 1 / _STEPS_PER_NINE)
    grid = np.concatenate([1 - 10.0**-nines, _ALWAYS, [first, last]])
    grid = np.unique(np.round(grid, 7))
    ranks = np.ceil(grid * count - 1e-9)
    supported: npt.NDArray[np.float64] = grid[(ranks - 1 >= SUPPORT) & (count - ranks >= SUPPORT)]
    return supported


@functools.lru_cache(maxsize=64)
def supported_ranks(count: int) -> npt.NDArray[np.int64]:
    """The ranks of these probabilities: of type 1 (inverse of the empirical distribution), so a value at a
    rank is never interpolated."""
    # The subtraction undoes binary fractions: 0.99 * 1000 must be rank 990, not 991.
    ranks = np.ceil(supported_probabilities(count) * count - 1e-9).astype(np.int64)
    clipped: npt.NDArray[np.int64] = np.clip(ranks, 1, count)
    return clipped


def curve(
    cell: str,
    edge: str,
    trials: Sequence[npt.NDArray[np.int64]],
    alpha: float | None = None,
    in_passing: bool = False,
) -> Curve | None:
    """The curve of an edge over the latencies of its valid trials; None if too few messages were delivered.
    alpha: the band's allowed error; None for no band. in_passing: computes the band together with the curve,
    since there are too many messages to scan them for each of its points.
    """
    if not trials:
        return None
    count = sum(len(trial) for trial in trials)
    if count <= 2 * SUPPORT:
        return None
    probabilities = supported_probabilities(count)
    sizes = [len(trial) for trial in trials if len(trial)]
    banded = alpha is not None and len(sizes) >= TRIALS_MIN
    # In a band each trial weighs the same; a curve of all messages would lean to trials with more of them.
    uneven = banded and max(sizes) > UNEVEN * min(sizes)
    if alpha is not None and banded and in_passing and count > PARTITIONED_MAX and not uneven:
        shares = [permille / 1000.0 for permille in _BAND_PERMILLE]
        values, band = with_band(trials, supported_ranks(count), shares, alpha)
    else:
        pool = Pool(trials) if uneven else None
        values = (
            np.array([pool.quantile(float(probability)) for probability in probabilities])
            if pool is not None
            else order_statistics(trials, supported_ranks(count))
        )
        band = _band(trials, alpha) if alpha is not None and banded else []
    return Curve(
        cell=cell,
        edge=edge,
        trials=len(trials),
        n=count,
        probabilities=probabilities.tolist(),
        latency_ns=values.tolist(),
        band_probabilities=[probability for probability, _, _ in band],
        band_low_ns=[low for _, low, _ in band],
        band_high_ns=[high for _, _, high in band],
    )


def _band(trials: Sequence[npt.NDArray[np.int64]], alpha: float) -> list[tuple[float, int, int]]:
    """The quantile's interval wherever the samples support one: probability, low, high."""
    pool = Pool(trials)
    estimates = [pool.estimate(permille, alpha) for permille in _BAND_PERMILLE]
    return [
        (estimate.permille / 1000.0, estimate.low_ns, estimate.high_ns)
        for estimate in estimates
        if estimate.status == OK and estimate.low_ns is not None and estimate.high_ns is not None
    ]
