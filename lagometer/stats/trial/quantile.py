# SPDX-License-Identifier: Apache-2.0
"""The one definition of a quantile for a trial's figures."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lagometer.stats.interval.confidence import SUPPORT


def quantile(ordered: npt.NDArray[np.int64], permille: int) -> int | None:
    """The type-1 quantile (Hyndman and Fan 1996: inverse of the empirical distribution) of ascending numbers.

    It is the k-th smallest of n, k = ceil(n * permille / 1000): an observed value, never interpolated. None
    if fewer than 10 numbers lie beyond it: above it, or below it for a quantile under the median.
    """
    count = len(ordered)
    rank = max(1, -(-count * permille // 1000))
    beyond = count - rank if permille >= 500 else rank - 1
    return int(ordered[rank - 1]) if beyond >= SUPPORT else None
