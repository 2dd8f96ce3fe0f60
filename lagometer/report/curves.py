# SPDX-License-Identifier: Apache-2.0
"""Percentile curves: quantiles on a grid that is even on the scale of nines, to the last one that
samples support.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lagometer.report.data import Curve

BEYOND_MIN = 10
_STEPS_PER_NINE = 20
_ALWAYS = (0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 0.99999)


@functools.lru_cache(maxsize=64)  # edges of a trial mostly delivered as many
def supported_probabilities(count: int) -> npt.NDArray[np.float64]:
    """Probabilities whose order statistic has at least 10 of `count` samples beyond it; empty below 21
    samples.
    """
    first, last = (BEYOND_MIN + 1) / count, (count - BEYOND_MIN) / count
    if first > last:
        return np.empty(0)
    nines = np.arange(0, -np.log10(1 - last) + 1e-9, 1 / _STEPS_PER_NINE)
    grid = np.concatenate([1 - 10.0**-nines, _ALWAYS, [first, last]])
    grid = np.unique(np.round(grid, 7))
    ranks = np.ceil(grid * count - 1e-9)
    supported: npt.NDArray[np.float64] = grid[(ranks - 1 >= BEYOND_MIN) & (count - ranks >= BEYOND_MIN)]
    return supported


def quantiles(values: npt.NDArray[np.int64], probabilities: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Order statistics of type 1 (inverse of the empirical distribution): never an interpolated value.

    `values` are put into another order.
    """
    # The subtraction undoes binary fractions: 0.99 * 1000 must be rank 990, not 991.
    ranks = np.clip(np.ceil(probabilities * len(values) - 1e-9).astype(np.int64), 1, len(values))
    # A hundred order statistics cost a third of the sort that would give all.
    values.partition(np.unique(ranks) - 1)
    found: npt.NDArray[np.int64] = values[ranks - 1]
    return found


def curve(cell: str, edge: str, trials: Sequence[npt.NDArray[np.int64]]) -> Curve | None:
    """The curve of an edge over the latencies of its valid trials; None where too few messages were
    delivered.
    """
    if not trials:
        return None
    values = np.concatenate(trials)
    if len(values) <= 2 * BEYOND_MIN:
        return None
    probabilities = supported_probabilities(len(values))
    return Curve(
        cell=cell,
        edge=edge,
        trials=len(trials),
        n=len(values),
        probabilities=[float(each) for each in probabilities],
        latency_ns=[int(each) for each in quantiles(values, probabilities)],
    )
