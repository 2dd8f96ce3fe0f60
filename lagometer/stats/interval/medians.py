# SPDX-License-Identifier: Apache-2.0
"""Figures of which each trial of a cell has one: their median, and an interval without any distribution.

The interval is the sign test turned round (David and Nagaraja, *Order Statistics*, 2003, section 7.1).
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
    """The median over trials in ns, and its 95 % interval: None where the trials are too few for one."""

    value_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None


def median_of_trials(values: Sequence[float | None]) -> TrialMedian:
    """The median of the trials that have the figure; the interval only if each has it."""
    present = [value for value in values if value is not None]
    if not present:
        return TrialMedian()
    low, high = median_interval(values) or (None, None)
    return TrialMedian(float(statistics.median(present)), low, high)


def median_interval(
    values: Sequence[float | None], alpha: float = 1.0 - CONFIDENCE
) -> tuple[float, float] | None:
    """The order statistics between which the median of what values are drawn from lies with probability
    1 - alpha at least, whatever their distribution (the sign test turned round); None where even the
    smallest and the largest don't do, or one is absent.
    """
    present = sorted(value for value in values if value is not None)
    count = len(present)
    if count < len(values):
        return None
    # How many may be left out at each end: the probability that no more than those lie beyond the median.
    beyond = scipy.special.bdtr(np.arange((count + 1) // 2), count, 0.5)
    outside = int(np.count_nonzero(2.0 * beyond <= alpha))
    return (present[outside - 1], present[count - outside]) if outside else None
