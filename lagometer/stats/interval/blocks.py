# SPDX-License-Identifier: Apache-2.0
"""How two trials of one block differ at their joint quantile, whatever one is divided by."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lagometer.stats.interval.confidence import Numbers

Logarithms = npt.NDArray[np.float64]

SMALLEST_NS = 0.5  # latencies at or below zero count as this: a ratio needs a number above zero
ROUNDING = 1e-6  # of a message
EQUAL = 1e-12  # latencies whose logarithms differ by less are equal


class Block:
    """The trials of two cells in one block, prepared once for any number of ratios.

    Sorted, the t-th message of B is among the lower half of both (for the median) if enough messages of A are
    not below it. As B is divided by a growing ratio, this begins at one ratio. So all it takes is these
    ratios. They are kept as logarithms: swapping A and B changes the sign.
    """

    def __init__(self, a: Numbers, b: Numbers, share: float) -> None:
        """a, b: latencies in ns, neither empty. share: 0.5 for the median; each trial weighs the same."""
        log_a, log_b = (np.log(np.maximum(np.sort(trial), SMALLEST_NS)) for trial in (a, b))
        self._counts = len(a), len(b)
        self._leaves = np.sort(-_joins(log_b, log_a, share))  # from here on, a message of A is not below
        self._joins = np.sort(_joins(log_a, log_b, share))  # from here on, a message of B is

    def difference(self, ratio: float) -> float:
        """How much larger B's share of messages up to the joint quantile is than A's, B over `ratio`.

        Equal messages of both count half, as if either order of them were as likely.
        """
        limits = math.log(ratio) + np.array((-EQUAL, EQUAL))
        left, joined = (np.searchsorted(places, limits).mean() for places in (self._leaves, self._joins))
        count_a, count_b = self._counts
        return float(joined / count_b - (count_a - left) / count_a)


def _joins(log_a: Logarithms, log_b: Logarithms, share: float) -> Logarithms:
    """For each message of B, the ratio from which on it is among the lower ones; both sides are sorted."""
    places = np.arange(len(log_b)) / len(log_b)
    needed = np.ceil(len(log_a) * (2.0 * share - places) - ROUNDING).astype(np.int64)  # of A, not below it
    reached = np.where(needed > len(log_a), np.inf, log_a[np.clip(needed, 1, len(log_a)) - 1])
    return np.where(needed < 1, np.inf, log_b - reached)
