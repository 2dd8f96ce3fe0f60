# SPDX-License-Identifier: Apache-2.0
"""Figures with one value per trial: their median, and a distribution-free interval.

The interval inverts the sign test (David and Nagaraja, *Order Statistics*, 2003, section 7.1).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from lagometer.stats.interval.confidence import CONFIDENCE


@dataclass(frozen=True)
class TrialMedian:
    """The median over trials in ns, and its 95 % interval, which is None with too few trials."""

    value_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None


def median_of_trials(values: Sequence[float | None]) -> TrialMedian:
    """The median of the trials that have the figure; the interval only if every trial has it."""
    present = [value for value in values if value is not None]
    if not present:
        return TrialMedian()
    low, high = median_interval(values) or (None, None)
    return TrialMedian(float(statistics.median(present)), low, high)


def median_interval(
    values: Sequence[float | None], alpha: float = 1.0 - CONFIDENCE
) -> tuple[float, float] | None:
    """The order statistics that enclose the median of the values' distribution with probability at least 1 -
    alpha, whatever that distribution is (the inverted sign test). None if even the smallest and the largest
    are not enough, or one is missing.
    """
    present = sorted(value for value in values if value is not None)
    count = len(present)
    if count < len(values):
        return None
    # How many may be left out at each end: the probability that at most that many lie beyond the median.
    beyond = scipy.special.bdtr(np.arange((count + 1) // 2), count, 0.5)
    outside = int(np.count_nonzero(2.0 * beyond <= alpha))
    return (present[outside - 1], present[count - outside]) if outside else None
